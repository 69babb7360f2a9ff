"""How much of the machine the data steps may use, as params.yaml says under `runtime:`; none of it moves a result."""

from __future__ import annotations

from pathlib import Path

from pydantic import ByteSize, Field, SerializeAsAny, ValidationError

from pipelines.corpora.engines import Engine
from pipelines.corpora.engines.memory import CHILD, PARENT
from pipelines.corpora.settings.dataset import FILE, read_params
from pipelines.corpora.settings.sources import Strict
from pipelines.errors import RecipeError


class DataRuntime(Strict):
    """Memory of all processes of a step together, how many they are (None: a process a core), and where they run."""

    memory: ByteSize = Field(default=ByteSize(2**30), ge=PARENT + CHILD, validate_default=True)
    processes: int | None = Field(default=None, ge=1)
    engine: SerializeAsAny[Engine] = Field(default_factory=Engine.usually)

    @property
    def workers(self) -> int:
        """How many processes may work at once."""
        return max(1, min(self.processes or self.engine.cores, (self.memory - PARENT) // CHILD))


def load_runtime(root: Path) -> DataRuntime:
    """The block `runtime:` of `root`/params.yaml. RecipeError when it says something impossible."""
    try:
        return DataRuntime.model_validate(dict(read_params(root).get("runtime") or {}))
    except ValidationError as invalid:
        error = invalid.errors()[0]
        raise RecipeError(f"{FILE}: runtime.{'.'.join(map(str, error['loc']))}: {error['msg']}") from None
