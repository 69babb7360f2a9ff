"""Chain-thaw: one layer at a time (Felbo et al. 2017, §3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.parts.strategies import Decision, ParameterGroup, Strategy, TrainingProgress, require_head


class ChainThaw(Strategy, name="chain_thaw"):
    """Train the head first, then each layer of the backbone alone from the bottom up, finally all parameters together.

    Each phase takes an equal share of the steps; the paper ends a phase when its validation score has converged. Raises
    RecipeError if the head adds no weights to the backbone.
    """

    paper = "arXiv:1708.00524"
    decides = frozenset({Decision.WHEN})

    embeddings: bool = True
    """Whether the embeddings have their own phase, before the first layer; otherwise they train in the last phase
    only."""

    def groups(self, groups: Sequence[ParameterGroup]) -> list[ParameterGroup]:
        require_head(self, groups)
        return list(groups)

    def trains(self, group: ParameterGroup, progress: TrainingProgress) -> bool:
        alone = [group.layers + 1, *range(0 if self.embeddings else 1, group.layers + 1)]
        phase = progress.step * (len(alone) + 1) // progress.total
        return phase >= len(alone) or alone[phase] == group.depth
