"""kernels.c, compiled for this machine and loaded into this process.

A library is kept under a name made of its source, the compiler and the processor's extensions, so that machines which
share a folder do not take each other's. It is used where `open_library` has been called, and nowhere else.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from ctypes import POINTER, c_float, c_int, c_ssize_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import torch
from torch import Tensor

from pipelines.training import hardware

log = logging.getLogger(__name__)

SOURCE = Path(__file__).with_name("kernels.c")
COMPILERS = ("cc", "gcc", "clang")
OPTIONS = (
    "-O3", "-march=native", "-fopenmp", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-ffinite-math-only",
    "-fno-signed-zeros", "-std=gnu11", "-fPIC", "-shared",
)  # fmt: skip
WIDE = "-mprefer-vector-width=512"
"""Compilers take half as wide vectors unless told."""
WITHIN = 60.0
"""Seconds that a compiler is given; it needs about one."""

POINTER_, SIZE, SEED, SHARE, REAL, FLAG = c_void_p, c_ssize_t, c_uint64, c_uint32, c_float, c_int
ARGUMENTS: dict[str, tuple[type, ...]] = {
    "cursus_philox": (SEED, SEED, POINTER_),
    "cursus_dropout": (POINTER_, POINTER_, SIZE, SEED, SHARE, REAL, FLAG, FLAG),
    "cursus_softmax": (
        POINTER_, POINTER_, POINTER(c_ssize_t), POINTER(c_ssize_t), POINTER_, POINTER_, SIZE, REAL, SEED, SHARE, REAL, FLAG, FLAG,
    ),
    "cursus_softmax_backward": (POINTER_, POINTER_, POINTER_, SIZE, SIZE, REAL, SEED, SHARE, REAL, FLAG, FLAG),
    "cursus_cross_entropy": (POINTER_, POINTER_, POINTER_, POINTER_, POINTER_, SIZE, SIZE, REAL, FLAG, FLAG),
    "cursus_column_sums": (POINTER_, POINTER_, SIZE, SIZE, FLAG, FLAG),
    "cursus_layer_norm": (
        POINTER_, POINTER_, POINTER_, POINTER_, POINTER_, POINTER_, SIZE, SIZE, REAL, FLAG, FLAG,
    ),
    "cursus_layer_norm_backward": (
        POINTER_, POINTER_, POINTER_, POINTER_, POINTER_, POINTER_, POINTER_, POINTER_, SIZE, SIZE, SIZE, FLAG, FLAG,
    ),
}  # fmt: skip

_opened: ctypes.CDLL | None = None


def open_library(folder: Path) -> bool:
    """Load the kernels, from `folder` or compiled into it. False, and the reason in the log, where that cannot be done."""
    global _opened
    if _opened is not None:
        return True
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        log.info(
            "no C compiler (%s): torch's own kernels compute, which takes about twice as long", ", ".join(COMPILERS)
        )
        return False
    path = folder / f"{_identity(compiler)}.so"
    try:
        if not path.exists():
            _compile(compiler, path)
        library = ctypes.CDLL(str(path))
        for name, arguments in ARGUMENTS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = list(arguments), None
    except (OSError, AttributeError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or error
        log.warning("kernels.c cannot be used here, torch's own kernels compute instead: %s", said)
        return False
    _opened = library
    return True


def opened() -> ctypes.CDLL | None:
    """The kernels, where this process has loaded them."""
    return _opened


def computable(values: Tensor) -> bool:
    """Whether they are loaded and can read `values`: on the CPU, in bfloat16 or float32."""
    return _opened is not None and values.device.type == "cpu" and values.dtype in (torch.bfloat16, torch.float32)


def close_library() -> None:
    """Use torch's own kernels from now on."""
    global _opened
    _opened = None


def _identity(compiler: str) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=WITHIN, check=True).stdout
    told = [SOURCE.read_text(encoding="utf-8"), version, *OPTIONS, hardware.processor(), *sorted(hardware.extensions())]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]


def _compile(compiler: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".compiling-") as aside:
        made = Path(aside) / path.name
        wide = (WIDE,) if "avx512f" in hardware.extensions() else ()
        command = [compiler, *OPTIONS, *wide, "-o", str(made), str(SOURCE), "-lm"]
        elsewhere = {**os.environ, "TMPDIR": aside}  # the usual folder need not be writable
        subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=True, env=elsewhere)
        os.replace(made, path)  # whoever compiles it at the same time makes the same
