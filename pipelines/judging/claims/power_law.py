"""The form `power_law`: a figure follows a power of the size of data, network or training."""

from __future__ import annotations

import math
from typing import Self

from pydantic import Field, field_validator, model_validator

from pipelines.judging.claims import ClaimForm, ComparedSide, Contrast, distinct


class PowerLawForm(ClaimForm, name="power_law"):
    """The figure improves by a constant factor with every doubling: figure ∝ at^−α of one of which less is better.

    α is the slope of least squares through the logarithms of both (Kaplan et al. 2020, arXiv:2001.08361, §1.2 and
    §3): a weighted sum of the logarithms of the figures, with the weights (x − x̄) / Σ (x − x̄)², so that its interval
    is that of any contrast. Recorded is 2^α, the factor of a doubling: α is its binary logarithm, and so are the
    exponents at the ends of the interval. A power without the constant of what no model can predict, which a ladder
    of few rungs cannot tell from the slope.
    """

    ratio = True

    stages: tuple[str, ...]
    """The rungs, from the smallest to the largest; at least three."""
    at: tuple[float, ...]
    """Size of each rung: tokens, parameters, steps."""
    exponent: float = Field(0.0, ge=0, le=10)
    """α that must be exceeded."""

    @field_validator("stages")
    @classmethod
    def _several(cls, stages: tuple[str, ...]) -> tuple[str, ...]:
        distinct(stages, 3)
        return stages

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if len(self.at) != len(self.stages):
            raise ValueError(f"`at` has {len(self.at)} numbers for {len(self.stages)} stages")
        if list(self.at) != sorted(set(self.at)) or self.at[0] <= 0:
            raise ValueError("`at` must be above zero, and rise from each stage to the next")
        return self

    @property
    def subject(self) -> str:
        return self.stages[-1]

    def sides(self) -> tuple[ComparedSide, ...]:
        return tuple(map(ComparedSide, reversed(self.stages)))

    def contrasts(self) -> tuple[Contrast, ...]:
        positions = [math.log2(one) for one in self.at]
        mean = sum(positions) / len(positions)
        spread = sum((one - mean) ** 2 for one in positions)
        terms = tuple(
            ((one - mean) / spread, ComparedSide(stage)) for one, stage in zip(positions, self.stages, strict=True)
        )
        label = f"factor of a doubling, from {self.stages[0]} to {self.stages[-1]}"
        return (Contrast(label, terms, self.exponent * math.log(2)),)
