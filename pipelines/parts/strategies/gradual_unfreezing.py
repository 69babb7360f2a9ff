"""Gradual unfreezing: layers start to train from the top down (Howard & Ruder 2018, §3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipelines.parts.strategies import Decision, ParameterGroup, Strategy, TrainingProgress, require_head


class GradualUnfreezing(Strategy, name="gradual_unfreezing"):
    """Train the head alone in the first epoch, then unfreeze one more layer from the top in each epoch.

    The embeddings are unfrozen last, after one epoch more than the backbone has layers. Raises RecipeError if the head
    adds no weights to the backbone.
    """

    paper = "arXiv:1801.06146"
    decides = frozenset({Decision.WHEN})

    every: float = Field(1.0, gt=0)
    """Epochs between unfreezing one layer and the next."""

    def groups(self, groups: Sequence[ParameterGroup]) -> list[ParameterGroup]:
        require_head(self, groups)
        return list(groups)

    def trains(self, group: ParameterGroup, progress: TrainingProgress) -> bool:
        unfrozen = int(progress.step / (progress.per_epoch * self.every))
        return group.depth > group.layers - unfrozen
