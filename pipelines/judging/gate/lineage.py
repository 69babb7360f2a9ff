"""Lineage: is everything that the candidate was made from there, and as it was published?"""

from __future__ import annotations

from pipelines.judging.gate import Criterion, CriterionOutcome
from pipelines.judging.gate.evidence import Evidence


class LineageCriterion(Criterion, name="lineage"):
    """Every ancestor is in the store, its files have the digests they were published with, and its record is whole."""

    def judge(self, evidence: Evidence) -> CriterionOutcome:
        found = evidence.descent
        if found.flaws:
            more = f", and {len(found.flaws) - 1} more" if len(found.flaws) > 1 else ""
            return self.missed(f"{found.flaws[0]}{more}", flaws=list(found.flaws))
        return self.met(f"all {found.steps} steps are in the store, as they were published", steps=found.steps)
