"""The C files beside this one, compiled for this machine and loaded into this process.

Each function of theirs is declared as a `Kernel` by the module that calls it. A library is kept under a name made of its
sources, the compiler and the processor's extensions, so that machines which share a folder do not take each other's. It is used
where `open_library` has been called, and nowhere else.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from ctypes import c_float, c_int, c_ssize_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import torch
from torch import Tensor

from pipelines.lineage import hardware

log = logging.getLogger(__name__)

SOURCES = Path(__file__).parent
COMPILERS = ("cc", "gcc", "clang")
OPTIONS = (
    "-O3", "-march=native", "-fopenmp", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-ffinite-math-only",
    "-fno-signed-zeros", "-std=gnu11", "-fPIC", "-shared",
)  # fmt: skip
WIDE = "-mprefer-vector-width=512"
"""Compilers take half as wide vectors unless told."""
WITHIN = 60.0
"""Seconds that a compiler is given; it needs about two."""

POINTER, SIZE, SEED, SHARE, REAL, FLAG = c_void_p, c_ssize_t, c_uint64, c_uint32, c_float, c_int
"""Types of a kernel's arguments: of tensors by `data_ptr()`, sizes, seeds, shares in 65,536, floats, small whole numbers."""

PARTS = 32
"""Sums over rows are taken in so many parts, whatever the number of threads: bits must not hang on that."""
VECTOR = 16
"""Numbers of a vector in the C files."""

_opened: ctypes.CDLL | None = None


class Kernel:
    """A function of the library, which is called like one of Python; it says nothing, it writes what it is pointed to."""

    def __init__(self, name: str, *arguments: type) -> None:
        self.name, self.arguments = name, list(arguments)
        self._found: tuple[ctypes.CDLL, Callable[..., None]] | None = None

    def __call__(self, *arguments: object) -> None:
        assert _opened is not None, "whoever calls a kernel has asked whether it can be had"
        if self._found is None or self._found[0] is not _opened:
            function = getattr(_opened, self.name)
            function.argtypes, function.restype = self.arguments, None
            self._found = (_opened, function)
        self._found[1](*arguments)


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
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or error
        log.warning("the kernels cannot be used here, torch's own kernels compute instead: %s", said)
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
    sources = [path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.[ch]"))]
    told = [*sources, version, *OPTIONS, hardware.processor(), *sorted(hardware.extensions())]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]


def _compile(compiler: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".compiling-") as aside:
        made = Path(aside) / path.name
        wide = (WIDE,) if "avx512f" in hardware.extensions() else ()
        sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
        command = [compiler, *OPTIONS, *wide, "-o", str(made), *sources, "-lm"]
        elsewhere = {**os.environ, "TMPDIR": aside}  # the usual folder need not be writable
        subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=True, env=elsewhere)
        os.replace(made, path)  # whoever compiles it at the same time makes the same
