"""What this machine computes with, found without importing torch: a plan is made before torch starts."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Literal

BF16_FLAGS = {"amx_bf16", "avx512_bf16", "bf16"}
"""Processor flags that mean matrix products in bfloat16 (x86 AMX, x86 AVX-512, Arm)."""


@cache
def accelerator() -> Literal["cpu", "gpu"]:
    """`gpu` where an NVIDIA driver shows a device and CUDA_VISIBLE_DEVICES does not hide it."""
    devices = Path("/proc/driver/nvidia/gpus")
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return "gpu" if not hidden and devices.is_dir() and any(devices.iterdir()) else "cpu"


@cache
def gpus() -> int:
    """NVIDIA devices that a process started here would see."""
    if accelerator() == "cpu":
        return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return len(visible.split(",")) if visible else len(list(Path("/proc/driver/nvidia/gpus").iterdir()))


@cache
def precision() -> Literal["32-true", "bf16-mixed"]:
    """bfloat16 autocast where the hardware computes in it, else float32."""
    if accelerator() == "gpu":
        return "bf16-mixed"
    try:
        described = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "32-true"
    flags = {
        flag
        for line in described.splitlines()
        if line.partition(":")[0].strip() in ("flags", "Features")
        for flag in line.partition(":")[2].split()
    }
    return "bf16-mixed" if flags & BF16_FLAGS else "32-true"


def cores() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
