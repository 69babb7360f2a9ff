"""torch in bfloat16, compiled, with frozen weights."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import DataError
from pipelines.serving.runtimes import Compute, ServingRuntime

if TYPE_CHECKING:
    from pipelines.serving.runtimes.source_model import SourceModel

COMPILERS = ("g++", "clang++", "c++")


class TorchBf16(ServingRuntime, name="torch_bf16"):
    """torch in bfloat16, compiled by Inductor once for all shapes, with weights frozen into the code.

    Compilation takes a minute at the first text, and again at the first batch of several; later processes of the same
    user find both in a cache. The cache is outside the folder: compiled code is never read from a folder, which may be
    from an untrusted source.
    """

    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    instructions: ClassVar[tuple[str, ...]] = ("amx_bf16", "avx512_bf16", "bf16")

    def missing(self) -> str | None:
        compiler = os.environ.get("CXX") or next(filter(shutil.which, COMPILERS), None)
        without = "no C++ compiler is installed: apt-get install g++, or name one in CXX"
        return super().missing() or (None if compiler else without)

    def convert(self, original: SourceModel, out: Path) -> None:
        import torch
        from safetensors.torch import load_file, save_file

        weights = sorted(original.folder.glob("*.safetensors"))
        if not weights:
            raise DataError(f"{original.folder}: no model.safetensors; only safetensors are exported")
        for path in weights:
            halved = {
                name: tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor
                for name, tensor in load_file(path).items()
            }
            save_file(halved, out / path.name, {"format": "pt"})
        for path in original.folder.glob("*.safetensors.index.json"):
            shutil.copyfile(path, out / path.name)

    def open(self, folder: Path, threads: int) -> Compute:
        import torch

        from pipelines.models.text_network import input_names, open_text_network
        from pipelines.serving.runtimes.torch_call import torch_compute

        network = open_text_network(folder).to(torch.bfloat16)
        cache = _cache(folder)
        with _compiling(cache):
            compiled = torch.compile(network, dynamic=True, options={"freezing": True})
        run = torch_compute(compiled, input_names(folder), threads)
        compiled_sizes: set[bool] = set()

        def compute(
            ids: NDArray[np.int64], mask: NDArray[np.int64], types: NDArray[np.int64] | None = None, /
        ) -> NDArray[np.float32]:
            single = len(ids) == 1  # torch compiles batches of size one separately
            if single in compiled_sizes:
                return run(ids, mask, types)
            with _compiling(cache):
                outputs = run(ids, mask, types)
            compiled_sizes.add(single)
            return outputs

        return compute


@contextmanager
def _compiling(cache: Path) -> Iterator[None]:
    """Context in which Inductor caches compiled code in `cache`."""
    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.environ[name] = str(cache)
    try:
        with warnings.catch_warnings():
            # torch itself still uses this
            warnings.filterwarnings("ignore", message=".*torch.jit.* is deprecated", category=DeprecationWarning)
            yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _cache(folder: Path) -> Path:
    """Cache folder for the compiled code of a folder's network: per user, and per digest of the weights."""
    from pipelines.lineage.fingerprint import digest_file

    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    weights = sorted(folder.glob("*.safetensors"))
    return home / "cursus" / "inductor" / digest_file(weights[0])[:16]
