"""Base class of everything that is written in a recipe."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from pipelines.components import class_words, refuse_unknown_keys


def as_list(value: Any) -> Any:
    """A single value as a list of one; lists and None unchanged."""
    return value if isinstance(value, (list, tuple)) or value is None else [value]


class StrictModel(BaseModel):
    """Frozen pydantic model that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        refuse_unknown_keys(class_words(cls), value, known)
        return value
