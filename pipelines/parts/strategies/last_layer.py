"""Train only the top of the network (Long et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipelines.parts.strategies import Decision, ParameterGroup, Strategy


class LastLayer(Strategy, name="last_layer"):
    """Train the head and the top layers of the backbone; the layers below keep their pre-trained weights.

    Features pass from general to task-specific from the bottom to the top (Long et al. 2015, §3), so the top has
    to change for a new task.
    """

    paper = "arXiv:1502.02791"
    decides = frozenset({Decision.WHICH})
    precludes = frozenset({Decision.WHEN})

    layers: int = Field(1, ge=1)
    """Number of layers of the backbone that train, from the top. The embeddings never train."""

    def groups(self, groups: Sequence[ParameterGroup]) -> list[ParameterGroup]:
        return [group for group in groups if group.depth > max(0, group.layers - self.layers)]
