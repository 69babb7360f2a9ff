"""Leakage: was the candidate trained on what it is judged by?"""

from __future__ import annotations

from pydantic import Field, NonNegativeInt

from pipelines.judging.gate import Criterion, CriterionOutcome
from pipelines.judging.gate.evidence import Evidence


class LeakageCriterion(Criterion, name="leakage"):
    """The dataset's leakage ledger is clean: what overlapped validation or test was taken out before training."""

    texts: NonNegativeInt = 0
    """Overlapping texts that may have been left in what is trained on (`decontaminate.action: warn` leaves them)."""
    test_share: float = Field(0.0, ge=0, le=1)
    """Share of the test examples that may stand elsewhere in their own set, as published sets have them."""

    def judge(self, evidence: Evidence) -> CriterionOutcome:
        found = evidence.overlaps
        if not found.trained_on_this:
            return self.undecided(
                f"the candidate was trained on another version of {found.dataset} than the one that the ledger is about"
            )
        left, share = sum(found.left_in.values()), found.leaked / max(1, found.tested)
        numbers = {"left_in": dict(found.left_in), "removed": found.removed, "leaked": found.leaked}
        where = f" ({', '.join(f'{count} {place}' for place, count in found.left_in.items())})" if left else ""
        said = (
            f"{left} texts that overlap validation or test were trained on{where}, allowed are {self.texts}; {found.leaked} of "
            f"{found.tested} test examples stand elsewhere in their set, allowed are {self.test_share:.1%}; {found.removed} "
            "overlapping texts were taken out"
        )
        if left > self.texts or share > self.test_share:
            return self.missed(said, **numbers)
        return self.met(said, **numbers)
