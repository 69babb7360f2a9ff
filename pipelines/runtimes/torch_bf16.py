"""torch in bfloat16, compiled, its weights frozen into the code."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt

from pipelines.errors import DataError
from pipelines.runtimes import Compute, Runtime

if TYPE_CHECKING:
    from torch.nn import Module

    from pipelines.runtimes.original import Original

COMPILERS = ("g++", "clang++", "c++")
SHAPES = 64
"""Compiled shapes that torch keeps of one network; its default is 8."""


class TorchBf16(Runtime, name="torch_bf16"):
    """torch in bfloat16, compiled by Inductor for a few shapes and frozen.

    A row is padded to the next of `lengths`, a batch to the next of `rows`, so that few shapes are compiled: each costs half
    a minute when it first occurs, and a second or two in later processes, from a cache outside of the folder: compiled code
    is never read from a folder that may have come from elsewhere.
    """

    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    instructions: ClassVar[tuple[str, ...]] = ("amx_bf16", "avx512_bf16", "bf16")

    lengths: tuple[PositiveInt, ...] = (32, 128, 512)
    """Tokens that rows are padded to; a longer row is as long as the network allows."""
    rows: tuple[PositiveInt, ...] = (1, 8, 32)
    """Examples that batches are padded to; a larger batch is cut."""

    def missing(self) -> str | None:
        compiler = os.environ.get("CXX") or next(filter(shutil.which, COMPILERS), None)
        without = "no C++ compiler is installed: apt-get install g++, or name one in CXX"
        return super().missing() or (None if compiler else without)

    def convert(self, original: Original, out: Path) -> None:
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

        from pipelines.runtimes.torch_call import called
        from pipelines.text_network import inputs_of, longest_of, open_text_network, orders_of

        network = open_text_network(folder).to(torch.bfloat16)
        compiled = called(_compiled(network), inputs_of(folder), threads)
        longest, orders, cache = longest_of(folder), orders_of(folder), _cache(folder)
        lengths = sorted({min(length, longest) for length in (*self.lengths, longest)})
        known: set[tuple[int, int]] = set()

        def compute(
            ids: NDArray[np.int64], mask: NDArray[np.int64], types: NDArray[np.int64] | None = None, /
        ) -> NDArray[np.float32]:
            largest = max(self.rows) * orders
            said = []
            for first in range(0, len(ids), largest):
                part = slice(first, first + largest)
                count, width = ids[part].shape
                shape = (_next(self.rows, count // orders) * orders, _next(lengths, width))
                padded = (
                    _padded(ids[part], shape),
                    _padded(mask[part], shape),
                    None if types is None else _padded(types[part], shape),
                )
                padded[1][count:, 0] = 1  # a mean over no token is none
                if shape in known:
                    rows = compiled(*padded)
                else:
                    with _compiling(cache):
                        rows = compiled(*padded)
                    known.add(shape)
                said.append(rows[: count // orders])
            return np.concatenate(said)

        return compute


def _compiled(network: Module) -> Callable[..., Any]:
    import torch

    return torch.compile(network, dynamic=False, options={"freezing": True})


@contextmanager
def _compiling(cache: Path) -> Iterator[None]:
    """While this lasts, what Inductor compiles is kept in `cache`."""
    import torch._dynamo.config as dynamo

    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.environ[name] = str(cache)
    try:
        with dynamo.patch(recompile_limit=SHAPES, accumulated_recompile_limit=4 * SHAPES):
            yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _cache(folder: Path) -> Path:
    """Where the code that is compiled of a folder's network is kept: of this user, and of these very weights."""
    from pipelines.lineage.fingerprint import digest_file

    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    weights = sorted(folder.glob("*.safetensors"))
    return home / "cursus" / "inductor" / digest_file(weights[0])[:16]


def _next(steps: Sequence[int], size: int) -> int:
    return next((step for step in sorted(steps) if step >= size), max(size, 1))


def _padded(rows: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    result = np.zeros(shape, dtype=np.int64)
    result[: rows.shape[0], : rows.shape[1]] = rows
    return result
