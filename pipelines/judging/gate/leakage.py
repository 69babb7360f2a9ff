"""Leakage: training data must not contain the texts that the candidate is judged on."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt

from pipelines.judging.gate import Criterion, CriterionOutcome
from pipelines.judging.gate.evidence import Evidence


class LeakageCriterion(Criterion, name="leakage"):
    """The dataset's leakage ledger is clean: texts that overlap validation or test were removed before training."""

    texts: NonNegativeInt = 0
    """Overlapping texts that may remain in training tables (`decontaminate.action: warn` keeps them)."""
    test_share: float = Field(0.0, ge=0, le=1)
    """Share of the test examples that may also occur elsewhere in their own set, as in some published sets."""

    def judge(self, evidence: Evidence) -> CriterionOutcome:
        leakage = evidence.leakage
        if not leakage.trained_on_this:
            return self.undecided(
                f"the candidate was trained on another version of {leakage.dataset} than the one that the ledger "
                "describes"
            )
        left, share = sum(leakage.left_in.values()), leakage.leaked / max(1, leakage.tested)
        numbers = {"left_in": dict(leakage.left_in), "removed": leakage.removed, "leaked": leakage.leaked}
        where = f" ({', '.join(f'{count} {part}' for part, count in leakage.left_in.items())})" if left else ""
        statement = (
            f"{left} texts that overlap validation or test were trained on{where}, allowed: {self.texts}; "
            f"{leakage.leaked} of {leakage.tested} test examples also occur elsewhere in their set, allowed: "
            f"{self.test_share:.1%}; "
            f"{leakage.removed} overlapping texts were removed"
        )
        if left > self.texts or share > self.test_share:
            return self.missed(statement, **numbers)
        return self.met(statement, **numbers)
