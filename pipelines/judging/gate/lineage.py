"""Lineage: every ancestor of the candidate is present and unchanged."""

from __future__ import annotations

from pipelines.judging.gate import Criterion, CriterionOutcome
from pipelines.judging.gate.evidence import Evidence


class LineageCriterion(Criterion, name="lineage"):
    """Every ancestor is in the store, its files match their published digests, and its record is consistent."""

    def judge(self, evidence: Evidence) -> CriterionOutcome:
        lineage = evidence.lineage
        if lineage.flaws:
            more = f", and {len(lineage.flaws) - 1} more" if len(lineage.flaws) > 1 else ""
            return self.missed(f"{lineage.flaws[0]}{more}", flaws=list(lineage.flaws))
        return self.met(
            f"all {lineage.steps} steps are in the store, unchanged since they were published", steps=lineage.steps
        )
