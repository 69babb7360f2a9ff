"""Only the top of the network trains (Long et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipelines.parts.strategies import Decision, Group, Strategy


class LastLayer(Strategy, name="last_layer"):
    """The head and the top layers of the body train; what lies below keeps its pre-trained weights.

    Features pass from general to task-specific from the bottom to the top (Long et al. 2015, §3), so the top is what a
    new task has to change.
    """

    paper = "arXiv:1502.02791"
    decides = frozenset({Decision.WHICH})
    settles = frozenset({Decision.WHEN})

    layers: int = Field(1, ge=1)
    """Layers of the body that train, counted from the top. The embeddings never do."""

    def groups(self, groups: Sequence[Group]) -> list[Group]:
        return [group for group in groups if group.depth > max(0, group.layers - self.layers)]
