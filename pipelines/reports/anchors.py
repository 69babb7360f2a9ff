"""Published figures to compare our scores with: anchors.yaml, validated when it is read."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from pipelines.errors import DataError

ANCHORS = "anchors.yaml"
Trained = Literal["pretrain", "adapt_domain", "adapt_task"]


class Figure(BaseModel):
    """One published score."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    through: tuple[Trained, ...]
    """Kinds of the training stages on plain text before the fine-tuning."""
    compressed: bool = False
    value: float = Field(ge=-1, le=1)
    deviation: float | None = Field(None, ge=0)
    """Standard deviation over the paper's seeds, if the paper gives one."""


class Anchor(BaseModel):
    """The scores that a paper reports of one system on one dataset."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: str
    """Name of the dataset in params.yaml."""
    system: str
    source: str
    metric: str
    parameters: PositiveInt
    figures: tuple[Figure, ...] = Field(min_length=1)


class Anchors(BaseModel):
    """The contents of anchors.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    anchors: tuple[Anchor, ...] = ()


def read_anchors(root: Path) -> tuple[Anchor, ...]:
    """The anchors of the project at `root`; none without the file.

    Raises DataError, which names the invalid entry.
    """
    path = root / ANCHORS
    if not path.is_file():
        return ()
    state = path.stat()
    return _read_cached(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=2)
def _read_cached(path: Path, modified: int, size: int) -> tuple[Anchor, ...]:
    """The file in the state that the other arguments identify: every plan of many reads it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return Anchors.model_validate(YAML(typ="safe").load(path) or {}).anchors
    except YAMLError as error:
        raise DataError(f"{path}: not YAML ({str(error).splitlines()[0]})") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{path}: {where}: {first['msg']}") from None
