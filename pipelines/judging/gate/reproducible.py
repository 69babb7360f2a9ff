"""Reproducibility: the candidate's code is known, and recreating it gave the same bytes."""

from __future__ import annotations

from typing import Literal

from pipelines.judging.gate import Criterion, CriterionOutcome
from pipelines.judging.gate.evidence import Evidence


class ReproducibleCriterion(Criterion, name="reproducible"):
    """The commit of every step is known, and a reproduction, if there was one, was identical byte for byte."""

    commit: Literal["any", "known", "clean"] = "clean"
    """Requirement for every step: none, a recorded commit, or also that no file differed from it."""
    reproduced: bool = False
    """Whether `cursus reproduce` must have recreated it. A reproduction that differs always misses the criterion."""

    def judge(self, evidence: Evidence) -> CriterionOutcome:
        lineage = evidence.lineage
        if lineage.identical is False:
            return self.missed(lineage.reproduction)
        unknown = [step for step, commit in lineage.commits.items() if commit is None]
        dirty = [step for step, commit in lineage.commits.items() if commit is not None and commit.endswith("+")]
        numbers = {"unknown": unknown, "changed": dirty, "identical": lineage.identical}
        if self.commit != "any" and unknown:
            return self.undecided(
                f"no commit is known for {', '.join(unknown)}: computed outside a git checkout", **numbers
            )
        if self.commit == "clean" and dirty:
            return self.undecided(
                f"{', '.join(dirty)}: computed by code that differs from the recorded commit; commit it and run again",
                **numbers,
            )
        if self.reproduced and lineage.identical is None:
            return self.undecided("it was not reproduced; run `cursus reproduce`, which leaves a record", **numbers)
        commits = sorted({commit[:8] for commit in lineage.commits.values() if commit is not None})
        code = f"computed at commit {', '.join(commits)}" if commits else "no commit is known, and none is required"
        return self.met(f"{code}; {lineage.reproduction or 'it was not reproduced'}", **numbers)
