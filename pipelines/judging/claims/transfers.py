"""The form `transfers`: what is learned on one dataset helps on another."""

from __future__ import annotations

from typing import ClassVar, Literal

from pipelines.judging.claims import ComparedSide, Contrast
from pipelines.judging.claims.pair import PairForm


class TransfersForm(PairForm, name="transfers"):
    """A system that is trained on one dataset and judged on another is better there than a baseline.

    The claim's `data` names both: `{trained: …, judged: …}`. They have the same task family.
    """

    roles: ClassVar[tuple[str, ...]] = ("trained", "judged")
    several_datasets: ClassVar[Literal["never", "optional", "always"]] = "always"

    baseline_trained_on: Literal["trained", "judged"] = "trained"
    """Dataset on which the baseline is trained: the same as the system, or, to ask what a transfer loses, the one on
    which both are judged; then the baseline may be the same stage."""
    at_least: float = 0.0
    """Difference that must be exceeded, in the figure's own unit; negative: how much a transfer may lose."""

    @property
    def may_repeat(self) -> bool:
        return self.baseline_trained_on == "judged"

    def sides(self) -> tuple[ComparedSide, ...]:
        return ComparedSide(self.system, "trained", "judged"), ComparedSide(
            self.baseline, self.baseline_trained_on, "judged"
        )

    def contrasts(self) -> tuple[Contrast, ...]:
        return (Contrast(f"{self.system} against {self.baseline}", self.terms(), self.at_least),)
