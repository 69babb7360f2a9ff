"""Discriminative fine-tuning: lower learning rates for lower layers (Howard & Ruder 2018, §3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipelines.parts.strategies import Decision, ParameterGroup, Strategy


class Discriminative(Strategy, name="discriminative"):
    """The learning rate of a layer is that of the layer above divided by `factor`; the head has the full rate."""

    paper = "arXiv:1801.06146"
    decides = frozenset({Decision.RATES})

    factor: float = Field(2.6, gt=1)
    """Ratio of the learning rates of two neighbouring layers."""

    def groups(self, groups: Sequence[ParameterGroup]) -> list[ParameterGroup]:
        return [group.replace(lr=group.lr / self.factor ** (group.layers + 1 - group.depth)) for group in groups]
