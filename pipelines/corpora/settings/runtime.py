"""Settings under `runtime:` in params.yaml: resources of the data steps. They do not affect results."""

from __future__ import annotations

from pathlib import Path

from pydantic import ByteSize, Field, SerializeAsAny, ValidationError

from pipelines.corpora.engines import Engine
from pipelines.corpora.engines.memory import CHILD, PARENT
from pipelines.corpora.settings.dataset import FILE, read_params
from pipelines.corpora.settings.sources import StrictSettings
from pipelines.errors import RecipeError


class DataRuntime(StrictSettings):
    """Total memory of a step's processes, their number (None: one per core), and the engine that runs them."""

    memory: ByteSize = Field(default=ByteSize(2**30), ge=PARENT + CHILD, validate_default=True)
    processes: int | None = Field(default=None, ge=1)
    engine: SerializeAsAny[Engine] = Field(default_factory=Engine.default)

    @property
    def workers(self) -> int:
        """Maximum number of concurrent processes."""
        return max(1, min(self.processes or self.engine.cores, (self.memory - PARENT) // CHILD))


def load_runtime(root: Path) -> DataRuntime:
    """Read the block `runtime:` of `root`/params.yaml. RecipeError when it is invalid."""
    try:
        return DataRuntime.model_validate(dict(read_params(root).get("runtime") or {}))
    except ValidationError as invalid:
        error = invalid.errors()[0]
        raise RecipeError(f"{FILE}: runtime.{'.'.join(map(str, error['loc']))}: {error['msg']}") from None
