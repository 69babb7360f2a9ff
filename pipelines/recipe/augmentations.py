"""Augmentation: changes of the training examples that leave their answers right, drawn anew in every epoch."""

from __future__ import annotations

from pydantic import Field, SerializeAsAny

from pipelines.judging.attacks import Attack
from pipelines.recipe.strict import StrictModel


class Augmentation(StrictModel):
    """An attack on the training examples of a stage."""

    attack: SerializeAsAny[Attack]
    """What changes an example."""
    rate: float = Field(0.1, gt=0, le=1)
    """Share of the words of an example that are changed (of its characters, in scripts without spaces)."""
    share: float = Field(1.0, gt=0, le=1)
    """Share of the examples that are changed in an epoch; the others stay as they are."""
