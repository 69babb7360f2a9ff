"""Size: an upper bound on the bytes of the served folder."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pipelines.judging.gate import Criterion, CriterionOutcome
from pipelines.judging.gate.evidence import CANDIDATE, CHAMPION, Evidence


class ModelSizeCriterion(Criterion, name="model_size"):
    """The served files stay within a budget: in megabytes, or as a multiple of the champion's."""

    at_most_mb: float | None = Field(None, gt=0)
    """Millions of bytes; None for no such budget."""
    times_champion: float | None = Field(1.25, gt=0)
    """Multiple of the champion's bytes; None for no such budget."""

    def evaluations(self, champion: bool) -> tuple[dict[str, Any], ...]:
        return ({"name": "serving"},)

    def judge(self, evidence: Evidence) -> CriterionOutcome:
        section = evidence.section("served")
        if section is None:
            return self.undecided("the size of the served folders was not measured")
        sizes = {one["stage"]: one["bytes"] / 1e6 for one in section["served"]}
        own = sizes[CANDIDATE]
        budgets: list[tuple[float, str]] = []
        if self.at_most_mb is not None:
            budgets.append((self.at_most_mb, f"at most {self.at_most_mb:g} MB"))
        if self.times_champion is not None and evidence.champion:
            relative = f"at most {self.times_champion:g} times the champion's {sizes[CHAMPION]:.2f} MB"
            budgets.append((self.times_champion * sizes[CHAMPION], relative))
        if not budgets:
            return self.not_required("there is no champion to compare with yet, and model_size.at_most_mb is not set")
        budget, requirement = min(budgets)
        return self.bounded(f"{own:.2f} MB, required: {requirement}", own, own, own, budget, above=False)
