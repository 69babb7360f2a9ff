"""The settings of promotions: the block `promotion:` of params.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, field_validator, model_validator

from pipelines.components import discover, refuse_unknown_keys
from pipelines.corpora.settings.blocks import read_block
from pipelines.judging.gate import Criterion

DEFAULT_CRITERIA: dict[str, dict[str, Any]] = {
    "quality": {},
    "latency": {},
    "model_size": {},
    "leakage": {},
    "lineage": {},
    "reproducible": {"commit": "any"},
}
"""Criteria and their settings when params.yaml has none."""


class PromotionSettings(BaseModel):
    """The block `promotion:` of params.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    criteria: tuple[SerializeAsAny[Criterion], ...] = Field(default=DEFAULT_CRITERIA, validate_default=True)
    """In the file, a mapping of criterion to its settings; criteria that are not named are not required."""
    wait_hours: float = Field(72.0, gt=0, le=8760, allow_inf_nan=False)
    """Hours that an inconclusive verdict waits for a decision in Prefect's UI; after that, nothing is promoted."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        refuse_unknown_keys("promotion", value, cls.model_fields)
        return value

    @field_validator("criteria", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return [
            {"name": name, **({} if settings is None else _mapping(name, settings))} for name, settings in value.items()
        ]

    @property
    def not_required(self) -> list[str]:
        """The criteria that exist and are not required."""
        discover("pipelines.judging.gate")
        return sorted(set(Criterion.members) - {criterion.name for criterion in self.criteria})

    @classmethod
    def load(cls, root: Path) -> Self:
        """Load the block from `root`/params.yaml. Raises RecipeError for unknown criteria or settings."""
        return read_block(root, "promotion", cls)


def _mapping(name: Any, settings: Any) -> Mapping[str, Any]:
    if not isinstance(settings, Mapping):
        raise ValueError(
            f"{name}: expected a mapping of its settings, got {settings!r}; {{}} requires it with its default settings"
        )
    return settings
