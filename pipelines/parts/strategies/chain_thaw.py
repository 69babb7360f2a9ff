"""One layer at a time (Felbo et al. 2017, §3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.parts.strategies import Decision, Group, Progress, Strategy, refuse_without_head


class ChainThaw(Strategy, name="chain_thaw"):
    """First what is new trains, then each layer of the body alone from the bottom up, at last everything together.

    Each phase takes an equal share of the steps; the paper ends a phase when its validation score has converged. Raises
    RecipeError where the head adds no weights to the body.
    """

    paper = "arXiv:1708.00524"
    decides = frozenset({Decision.WHEN})

    embeddings: bool = True
    """Whether the embeddings have a phase of their own, before the first layer; else they train in the last phase only."""

    def groups(self, groups: Sequence[Group]) -> list[Group]:
        refuse_without_head(self, groups)
        return list(groups)

    def trains(self, group: Group, progress: Progress) -> bool:
        alone = [group.layers + 1, *range(0 if self.embeddings else 1, group.layers + 1)]
        phase = progress.step * (len(alone) + 1) // progress.total
        return phase >= len(alone) or alone[phase] == group.depth
