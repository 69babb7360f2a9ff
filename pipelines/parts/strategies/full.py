"""Every parameter trains, all the time."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipelines.parts.strategies import Decision, Group, Strategy


class Full(Strategy, name="full"):
    """Plain fine-tuning: body and head train together (Devlin et al. 2018, §3.2)."""

    paper = "arXiv:1810.04805"
    decides = frozenset({Decision.WHICH})

    head_rate: float = Field(1.0, gt=0)
    """Multiple of the rate for weights outside the body: a new head has further to go than a pre-trained body."""

    def groups(self, groups: Sequence[Group]) -> list[Group]:
        return [group.at(lr=group.lr * self.head_rate) if group.is_head else group for group in groups]
