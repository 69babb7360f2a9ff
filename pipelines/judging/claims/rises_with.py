"""The form `rises_with`: a figure grows along a ladder of stages."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import field_validator, model_validator

from pipelines.judging.claims import ClaimForm, ComparedSide, Contrast, distinct


class RisesWithForm(ClaimForm, name="rises_with"):
    """The figure improves along a ladder: the linear trend of least squares through the stages' figures is above zero.

    The trend is a weighted sum of the figures, with the weights (x − x̄) / Σ (x − x̄)² (Rosenthal, Rosnow & Rubin 2000,
    Contrasts and Effect Sizes, §3), so that its interval is that of any contrast. It says that the figure rises on the
    whole, not that every rung is above the one before: that is `in_order`.
    """

    short_key = "stages"

    stages: tuple[str, ...]
    """The rungs, from the lowest to the highest; at least three."""
    at: tuple[float, ...] | None = None
    """Where each rung stands: tokens, parameters, layers; None: 1, 2, 3 …"""
    scale: Literal["linear", "log"] = "linear"
    """`log`: improvement with every doubling of `at`."""
    at_least: float = 0.0
    """Trend that must be exceeded: improvement for each unit of `at`, or each doubling."""

    @field_validator("stages")
    @classmethod
    def _several(cls, stages: tuple[str, ...]) -> tuple[str, ...]:
        distinct(stages, 3)
        return stages

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.at is None:
            if self.scale == "log":
                raise ValueError("scale log needs `at`, a number for each stage")
            return self
        if len(self.at) != len(self.stages):
            raise ValueError(f"`at` has {len(self.at)} numbers for {len(self.stages)} stages")
        if list(self.at) != sorted(set(self.at)):
            raise ValueError("`at` must rise from each stage to the next")
        if self.scale == "log" and self.at[0] <= 0:
            raise ValueError("scale log needs numbers above zero")
        return self

    @property
    def subject(self) -> str:
        return self.stages[-1]

    def sides(self) -> tuple[ComparedSide, ...]:
        return tuple(map(ComparedSide, reversed(self.stages)))

    def contrasts(self) -> tuple[Contrast, ...]:
        at = self.at or tuple(map(float, range(1, len(self.stages) + 1)))
        positions = [math.log2(one) for one in at] if self.scale == "log" else list(at)
        mean = sum(positions) / len(positions)
        spread = sum((one - mean) ** 2 for one in positions)
        terms = tuple(
            ((one - mean) / spread, ComparedSide(stage)) for one, stage in zip(positions, self.stages, strict=True)
        )
        unit = "every doubling" if self.scale == "log" else "every rung" if self.at is None else "every unit"
        return (Contrast(f"trend from {self.stages[0]} to {self.stages[-1]}, for {unit}", terms, self.at_least),)
