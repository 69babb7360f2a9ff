"""Full fine-tuning: every parameter trains at every step."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipelines.parts.strategies import Decision, ParameterGroup, Strategy


class Full(Strategy, name="full"):
    """Plain fine-tuning: backbone and head train together (Devlin et al. 2018, §3.2)."""

    paper = "arXiv:1810.04805"
    decides = frozenset({Decision.WHICH})

    head_rate: float = Field(1.0, gt=0)
    """Multiple of the learning rate for the head, which needs larger updates than a pre-trained backbone."""

    def groups(self, groups: Sequence[ParameterGroup]) -> list[ParameterGroup]:
        return [group.replace(lr=group.lr * self.head_rate) if group.is_head else group for group in groups]
