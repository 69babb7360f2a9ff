"""The form `within`: a system is not worse than a baseline by more than a margin."""

from __future__ import annotations

from pydantic import Field

from pipelines.judging.claims import Contrast
from pipelines.judging.claims.pair import PairForm


class WithinForm(PairForm, name="within"):
    """The figure of a system is worse than that of a baseline by less than a margin, or better (non-inferiority)."""

    margin: float = Field(gt=0)
    """Largest loss that still counts as close, in the figure's own unit: 0.01 for a point of accuracy."""

    def contrasts(self) -> tuple[Contrast, ...]:
        return (Contrast(f"{self.system} against {self.baseline}", self.terms(), -self.margin),)
