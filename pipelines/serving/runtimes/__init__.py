"""Runtimes: how a finished network is computed on a processor, in which precision.

    float32 folder ─▶ convert ─▶ the runtime's own files ─▶ open ─▶ compute(input_ids, attention_mask) ─▶ one array a text

A runtime serves networks that answer a text with one array (`pipelines.models.text_network`). Which of them is fastest hangs on the
machine, so `cursus export` measures them (`pipelines.serving.exporting`); the folder that it writes is opened here.
"""

from __future__ import annotations

import importlib.util
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from pipelines.components import Component, discover

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.serving.runtimes.source_model import SourceModel


class Compute(Protocol):
    """A network at work, on a batch of rows."""

    def __call__(
        self,
        input_ids: NDArray[np.int64],
        attention_mask: NDArray[np.int64],
        token_type_ids: NDArray[np.int64] | None = None,
        /,
    ) -> NDArray[np.float32]:
        """[B, D] of rows [B, L]; [B / 2, D] where two rows are one example. Of which text a token is may be told where
        the network asks for it; else all are of the first."""


class ServingRuntime(Component):
    """A library that computes networks on a processor, in one precision."""

    is_reference: ClassVar[bool] = False
    """Whether it is the one with which all others are compared; of the runtimes one is."""
    packages: ClassVar[tuple[str, ...]]
    """Distributions it needs to convert and to serve, by the names under which they are imported."""
    extra: ClassVar[str] = ""
    """The extra of this project that installs them; empty where every installation has them."""
    instructions: ClassVar[tuple[str, ...]] = ()
    """Processor extensions, as Linux names them, without any of which its arithmetic is slow; empty where any will do."""
    opens: ClassVar[str] = ""
    """The file that says a folder without the record of an export is this runtime's; empty for a form that only exports have."""

    def missing(self) -> str | None:
        """What it lacks on this machine and how to get it, as the end of a sentence; None when it can run."""
        absent = [name for name in self.packages if importlib.util.find_spec(name) is None]
        if not absent:
            return None
        how = f"pip install -c requirements.lock -e '.[{self.extra}]'" if self.extra else "install this project again"
        return f"{' and '.join(absent)} not installed: {how}"

    @abstractmethod
    def convert(self, original: SourceModel, out: Path) -> None:
        """Write into the folder `out` the form of `original` that `open` reads, beside copies of its configuration."""

    @abstractmethod
    def open(self, folder: Path, threads: int) -> Compute:
        """The network of a folder that `convert` wrote, on `threads` threads. Raises DataError when it cannot be read."""


def runtimes_by_name() -> dict[str, ServingRuntime]:
    """Every runtime by name, with its defaults."""
    discover(__name__)
    return {name: ServingRuntime.model_validate(name) for name in sorted(ServingRuntime.members)}


def reference_runtime() -> str:
    """The name of the runtime with which all others are compared."""
    (found,) = [name for name, runtime in runtimes_by_name().items() if runtime.is_reference]
    return found
