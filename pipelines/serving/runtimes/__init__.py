"""Serving runtimes: how a finished network is computed on a processor, and in which precision.

    float32 folder ─▶ convert ─▶ the runtime's own files ─▶ open ─▶ compute(input_ids, mask) ─▶ one array per text

A runtime serves networks that return one array per text (`pipelines.models.text_network`). Which one is fastest depends
on the machine, so `cursus export` measures them (`pipelines.serving.exporting`); the folder that it writes is opened
here.
"""

from __future__ import annotations

import importlib.util
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from pipelines.components import Component, discover
from pipelines.errors import DataError
from pipelines.networks.folder import ONNX, SAFETENSORS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.serving.runtimes.source_model import SourceModel


class Compute(Protocol):
    """A network as a function of a batch of rows."""

    def __call__(
        self,
        input_ids: NDArray[np.int64],
        attention_mask: NDArray[np.int64],
        token_type_ids: NDArray[np.int64] | None = None,
        /,
    ) -> NDArray[np.float32]:
        """Outputs [B, D] of rows [B, L]; [B / 2, D] if two rows are one example.

        `token_type_ids` are optional for networks that read them; the default is 0.
        """


class ServingRuntime(Component):
    """A library that computes networks on a processor, in one precision."""

    is_reference: ClassVar[bool] = False
    """Whether all others are compared with it; true of exactly one runtime."""
    packages: ClassVar[tuple[str, ...]]
    """Import names of the packages that converting and serving need."""
    extra: ClassVar[str] = ""
    """The extra of this project that installs them; empty if every installation has them."""
    instructions: ClassVar[tuple[str, ...]] = ()
    """Processor extensions, by their Linux names, one of which it needs to be fast; empty if it needs none."""
    opens: ClassVar[str] = ""
    """The file by which a folder without an export record belongs to this runtime; empty for a format that only exports
    have."""

    def missing(self) -> str | None:
        """What it lacks on this machine and how to get it, as the end of a sentence; None if it can run."""
        absent = [name for name in self.packages if importlib.util.find_spec(name) is None]
        if not absent:
            return None
        how = f"pip install -c requirements.lock -e '.[{self.extra}]'" if self.extra else "install this project again"
        return f"{' and '.join(absent)} not installed: {how}"

    @abstractmethod
    def convert(self, original: SourceModel, out: Path) -> None:
        """Write `original` into the folder `out` in the format that `open` reads; `out` already has copies of its
        configuration."""

    @abstractmethod
    def open(self, folder: Path, threads: int) -> Compute:
        """The network of a folder that `convert` wrote, on `threads` threads. Raises DataError if it cannot be read."""


def runtimes_by_name() -> dict[str, ServingRuntime]:
    """Every runtime by name, with its defaults."""
    discover(__name__)
    return {name: ServingRuntime.model_validate(name) for name in sorted(ServingRuntime.members)}


def runtime_of(folder: Path) -> str:
    """Name of the runtime that opens a stage's folder as it is. Raises DataError for one without weights."""
    forms = {runtime.opens: name for name, runtime in runtimes_by_name().items() if runtime.opens}
    # if both exist, the graph was converted from the weights
    for file in (ONNX, SAFETENSORS):
        if (folder / file).is_file():
            return forms[file]
    raise DataError(f"{folder}: holds neither {ONNX} nor {SAFETENSORS}, so it has no weights to load")


def reference_runtime() -> str:
    """Name of the runtime with which all others are compared."""
    (name,) = [name for name, runtime in runtimes_by_name().items() if runtime.is_reference]
    return name
