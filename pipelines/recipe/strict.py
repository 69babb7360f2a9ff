"""The base of everything a recipe spells out."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from pipelines.components import refuse_unknown_keys


class StrictModel(BaseModel):
    """Frozen; refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        refuse_unknown_keys(f"a {cls.__name__.lower()}", value, cls.model_fields)
        return value
