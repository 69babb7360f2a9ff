"""Reproducibility: could the candidate be made again, and was it?"""

from __future__ import annotations

from typing import Literal

from pipelines.judging.gate import Criterion, CriterionOutcome
from pipelines.judging.gate.evidence import Evidence


class ReproducibleCriterion(Criterion, name="reproducible"):
    """The code that made the candidate is known, and where it was made again the bytes were the same."""

    commit: Literal["any", "known", "clean"] = "clean"
    """Of every step: nothing asked, a commit is recorded, or also that no file differed from it."""
    reproduced: bool = False
    """Whether `cursus reproduce` must have made it again. Where it did and found a difference, that is always missed."""

    def judge(self, evidence: Evidence) -> CriterionOutcome:
        found = evidence.descent
        if found.identical is False:
            return self.missed(found.reproduction)
        unknown = [step for step, commit in found.commits.items() if commit is None]
        dirty = [step for step, commit in found.commits.items() if commit is not None and commit.endswith("+")]
        numbers = {"unknown": unknown, "changed": dirty, "identical": found.identical}
        if self.commit != "any" and unknown:
            return self.undecided(
                f"of {', '.join(unknown)} no commit is known: they were computed outside a git checkout", **numbers
            )
        if self.commit == "clean" and dirty:
            return self.undecided(
                f"{', '.join(dirty)} were computed by code that differs from the commit they name; commit it and run again",
                **numbers,
            )
        if self.reproduced and found.identical is None:
            return self.undecided("it was not made again; `cursus reproduce` does, and leaves a record", **numbers)
        commits = sorted({commit[:8] for commit in found.commits.values() if commit is not None})
        code = f"computed at commit {', '.join(commits)}" if commits else "no commit is known, and none was asked for"
        return self.met(f"{code}; {found.reproduction or 'it was not made again'}", **numbers)
