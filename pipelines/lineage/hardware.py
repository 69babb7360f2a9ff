"""Processor and GPUs of this machine, without importing torch: plans are made before torch is loaded."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import Literal

BF16_FLAGS = {"amx_bf16", "avx512_bf16", "bf16"}
"""Processor flags of hardware with bfloat16 matrix products (x86 AMX, x86 AVX-512, Arm)."""
ROUNDING = ("fma", "avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve", "sve2", "bf16")
"""Processor flags by which mathematical libraries choose kernels that round differently."""


@cache
def accelerator() -> Literal["cpu", "gpu"]:
    """`gpu` where an NVIDIA driver shows a device and CUDA_VISIBLE_DEVICES does not hide it."""
    devices = Path("/proc/driver/nvidia/gpus")
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return "gpu" if not hidden and devices.is_dir() and any(devices.iterdir()) else "cpu"


@cache
def gpus() -> int:
    """Number of NVIDIA devices visible to a process started here."""
    if accelerator() == "cpu":
        return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return len(visible.split(",")) if visible else len(list(Path("/proc/driver/nvidia/gpus").iterdir()))


@cache
def precision() -> Literal["32-true", "bf16-mixed"]:
    """bfloat16 autocast where the hardware supports it, else float32."""
    if accelerator() == "gpu":
        return "bf16-mixed"
    return "bf16-mixed" if set(_processor()[1]) & BF16_FLAGS else "32-true"


@cache
def device_name(kind: Literal["cpu", "gpu"]) -> str:
    """Name of the device, as far as it may affect rounding: the GPU, or the processor with its extensions."""
    if kind == "gpu":
        for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("Model:"):
                    return line.partition(":")[2].strip()
        return "gpu"
    name, flags = _processor()
    return " ".join([name, *(flag for flag in ROUNDING if flag in flags)])


def processor() -> str:
    """The processor's name, or its architecture where the system reports no name."""
    return _processor()[0]


def extensions() -> frozenset[str]:
    """The processor's extensions, as Linux names them; none elsewhere."""
    return _processor()[1]


@cache
def _processor() -> tuple[str, frozenset[str]]:
    """The processor's name and flags as Linux reports them; on other systems the name of its architecture alone."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine(), frozenset()
    lines = [(key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in cpuinfo.splitlines())]
    name = next((value for key, value in lines if key == "model name"), platform.machine())
    return name, frozenset(flag for key, value in lines if key in ("flags", "Features") for flag in value.split())


def cores() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
