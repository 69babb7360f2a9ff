"""Base class of backbones that read rows of any length, and whose configuration holds their options by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pipelines.parts.backbones import Backbone


class UnboundedBackbone(Backbone):
    """A network without positions, of `pipelines.networks`; its `model_type` is the name of the member."""

    @property
    def max_length(self) -> int | None:
        return None

    @classmethod
    def recognise(cls, config: Mapping[str, Any]) -> Self | None:
        if config.get("model_type") != cls.name:
            return None
        return cls.model_validate({key: config[key] for key in cls.model_fields if key in config})
