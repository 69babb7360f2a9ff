"""The C files of this folder, compiled for this machine and loaded into this process.

Each C function is declared as a `Kernel` by the module that calls it. The name of a compiled library is a digest of its
sources, the compiler and the processor's extensions, so that machines that share a folder do not load each other's, and
a digest of its bytes, so that a damaged one is not loaded. The library is used only in processes that have called
`open_library`.
"""

from __future__ import annotations

import ctypes
import errno
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

from pipelines.errors import CursusError
from pipelines.lineage import hardware
from pipelines.lineage.fingerprint import digest_file

log = logging.getLogger(__name__)

SOURCES = Path(__file__).parent
COMPILERS = ("cc", "gcc", "clang")
COMPILER_OPTIONS = (
    "-O3", "-march=native", "-fopenmp", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
    "-ffinite-math-only", "-fno-signed-zeros", "-std=gnu11", "-fPIC", "-shared",
)  # fmt: skip
WIDE_VECTORS = "-mprefer-vector-width=512"
"""Without this option compilers use vectors half as wide."""
COMPILE_SECONDS = 1800.0
"""Timeout of the compiler; it takes about two seconds of an idle machine. A process that went on without the kernels
would compute other numbers, so that results would depend on what else the machine does."""
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

POINTER, SIZE, SEED, SHARE, REAL, FLAG = c_void_p, c_ssize_t, c_uint64, c_uint32, c_float, c_int
"""Types of a kernel's arguments: tensors as `data_ptr()`, sizes, seeds, shares in units of 1/65,536, floats, small
integers."""

PARTS = 32
"""Sums over rows are computed in this many parts for any number of threads, so that results do not depend on that
number."""
VECTOR = 16
"""Elements of a vector in the C files."""

_library: ctypes.CDLL | None = None


class Kernel:
    """A function of the library as a Python callable.

    It returns nothing: results are written through its pointer arguments.
    """

    def __init__(self, name: str, *arguments: type) -> None:
        self.name, self.arguments = name, list(arguments)
        self._function: tuple[ctypes.CDLL, Callable[..., None]] | None = None

    def __call__(self, *arguments: object) -> None:
        assert _library is not None, "a kernel was called before open_library() succeeded"
        if self._function is None or self._function[0] is not _library:
            function = getattr(_library, self.name)
            function.argtypes, function.restype = self.arguments, None
            self._function = (_library, function)
        self._function[1](*arguments)


def open_library(folder: Path) -> bool:
    """Load the kernels from `folder`, compiling them first if needed.

    False, with the reason in the log, where this machine can never do that. Raises CursusError for a compiler that does
    not end, and OSError for a disk without space: later it could, and the numbers would be others.
    """
    global _library
    if _library is not None:
        return True
    compiler = next((program for name in COMPILERS if (program := shutil.which(name))), None)
    if compiler is None:
        log.info(
            "no C compiler (%s): torch's own kernels compute, which takes about twice as long", ", ".join(COMPILERS)
        )
        return False
    try:
        identity = _identity(compiler)
        library = ctypes.CDLL(str(_undamaged(folder, identity) or _compile(compiler, folder, identity)))
    except subprocess.TimeoutExpired:
        raise CursusError(
            f"{compiler} has not compiled the CPU kernels in {COMPILE_SECONDS / 60:.3g} minutes; run again when this "
            "machine has less to do, or take the compiler out of PATH to compute with torch's own kernels"
        ) from None
    except (OSError, subprocess.SubprocessError) as error:
        if getattr(error, "errno", None) in NO_SPACE:
            raise
        error_output = getattr(error, "stderr", None) or error
        if os.strerror(errno.ENOSPC) in str(error_output):  # the compiler found no space
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from None
        log.warning(
            "the CPU kernels cannot be compiled or loaded, torch's own kernels compute instead: %s", error_output
        )
        return False
    _library = library
    return True


def loaded_library() -> ctypes.CDLL | None:
    """The library, if this process has loaded it."""
    return _library


def is_readable(values: Tensor) -> bool:
    """Whether the kernels are loaded and can read `values`: on the CPU, in bfloat16 or float32."""
    return _library is not None and values.device.type == "cpu" and values.dtype in (torch.bfloat16, torch.float32)


def close_library() -> None:
    """Stop using the kernels in this process; torch's own compute from now on."""
    global _library
    _library = None


def _identity(compiler: str) -> str:
    version = subprocess.run(
        [compiler, "--version"], capture_output=True, text=True, timeout=COMPILE_SECONDS, check=True
    ).stdout
    sources = [path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.[ch]"))]
    identity = [*sources, version, *COMPILER_OPTIONS, hardware.processor(), *sorted(hardware.extensions())]
    return hashlib.sha256("\n".join(identity).encode()).hexdigest()[:32]


def _undamaged(folder: Path, identity: str) -> Path | None:
    """The compiled library of this identity; None where there is none that has the bytes which its name says.

    Others are removed: to load a file that was cut ends the process (SIGBUS), and a flipped bit computes anything.
    """
    for path in sorted(folder.glob(f"{identity}-*.so")):
        if path.name == _name(identity, path):
            return path
        log.warning("%s is damaged: the CPU kernels are compiled anew", path)
        path.unlink(missing_ok=True)
    return None


def _name(identity: str, library: Path) -> str:
    return f"{identity}-{digest_file(library)[:32]}.so"


def _compile(compiler: str, folder: Path, identity: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".compiling-") as temporary:
        made = Path(temporary) / "kernels.so"
        wide = (WIDE_VECTORS,) if "avx512f" in hardware.extensions() else ()
        sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
        command = [compiler, *COMPILER_OPTIONS, *wide, "-o", str(made), *sources, "-lm"]
        environment = {**os.environ, "TMPDIR": temporary}  # the default folder may not be writable
        subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=True, env=environment)
        path = folder / _name(identity, made)
        os.replace(made, path)  # another process that compiles at the same time produces the same file
    return path
