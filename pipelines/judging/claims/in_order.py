"""The form `in_order`: several stages are ranked."""

from __future__ import annotations

from itertools import pairwise

from pydantic import field_validator

from pipelines.judging.claims import ClaimForm, ComparedSide, Contrast, distinct


class InOrderForm(ClaimForm, name="in_order"):
    """Each stage of a list is better than the next: all neighbours are compared, with simultaneous intervals.

    The intervals together contain all differences in 95 of 100 measurements (Bonferroni), so that among many pairs a
    reversed one is not a matter of luck. The claim holds if every pair does, and fails if one is reversed.
    """

    short_key = "stages"

    stages: tuple[str, ...]
    """The stages, the best first."""
    at_least: float = 0.0
    """Difference that each pair must exceed, in the figure's own unit."""

    @field_validator("stages")
    @classmethod
    def _several(cls, stages: tuple[str, ...]) -> tuple[str, ...]:
        distinct(stages)
        return stages

    @property
    def subject(self) -> str:
        return self.stages[0]

    def sides(self) -> tuple[ComparedSide, ...]:
        return tuple(map(ComparedSide, self.stages))

    def contrasts(self) -> tuple[Contrast, ...]:
        return tuple(
            Contrast(f"{better.stage} against {worse.stage}", ((-1.0, worse), (1.0, better)), self.at_least)
            for better, worse in pairwise(self.sides())
        )
