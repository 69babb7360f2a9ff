"""Layers join from the top (Howard & Ruder 2018, §3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipelines.parts.strategies import Decision, Group, Progress, Strategy, refuse_without_head


class GradualUnfreezing(Strategy, name="gradual_unfreezing"):
    """The head trains alone in the first pass over the data; then one more layer joins it from the top in each pass.

    The embeddings join last, after as many passes as the body has layers and one more. Raises RecipeError where the head
    adds no weights to the body.
    """

    paper = "arXiv:1801.06146"
    decides = frozenset({Decision.WHEN})

    every: float = Field(1.0, gt=0)
    """Passes over the data between one layer and the next."""

    def groups(self, groups: Sequence[Group]) -> list[Group]:
        refuse_without_head(self, groups)
        return list(groups)

    def trains(self, group: Group, progress: Progress) -> bool:
        joined = int(progress.step / (progress.per_epoch * self.every))
        return group.depth > group.layers - joined
