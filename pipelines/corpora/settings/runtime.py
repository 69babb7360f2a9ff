"""Settings under `runtime:` in params.yaml: resources of the data steps. They do not affect results."""

from __future__ import annotations

from pathlib import Path

from pydantic import ByteSize, Field, SerializeAsAny

from pipelines.corpora.engines import Engine
from pipelines.corpora.engines.memory import CHILD, PARENT
from pipelines.corpora.settings.blocks import read_block
from pipelines.corpora.settings.sources import StrictSettings


class DataRuntime(StrictSettings):
    """Total memory of a step's processes, their number (None: one per core), and the engine that runs them."""

    memory: ByteSize = Field(default=ByteSize(2**30), ge=PARENT + CHILD, validate_default=True)
    processes: int | None = Field(default=None, ge=1, le=4096)
    engine: SerializeAsAny[Engine] = Field(default_factory=Engine.default)

    @property
    def workers(self) -> int:
        """Maximum number of concurrent processes."""
        return max(1, min(self.processes or self.engine.cores, (self.memory - PARENT) // CHILD))


def load_runtime(root: Path) -> DataRuntime:
    """Read the block `runtime:` of `root`/params.yaml. RecipeError when it is invalid."""
    return read_block(root, "runtime", DataRuntime)
