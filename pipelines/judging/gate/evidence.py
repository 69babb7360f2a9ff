"""Evidence about a candidate and the champion it would replace: plain values, gathered before any criterion is
judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CANDIDATE, CHAMPION = "candidate", "champion"
"""Stage names of the two models in the record of the judging step."""


@dataclass(frozen=True)
class LeakageEvidence:
    """Summary of the dataset's leakage ledger."""

    dataset: str
    left_in: Mapping[str, int]
    """`table/part (kind)` → number of texts that overlap validation or test and remain in a training table."""
    removed: int
    """Number of overlapping texts that were removed."""
    leaked: int
    """Number of test examples that also occur elsewhere in their own published set."""
    tested: int
    """Number of test examples."""
    trained_on_this: bool
    """Whether the candidate was trained on exactly the tables that the ledger describes."""


@dataclass(frozen=True)
class LineageEvidence:
    """The candidate's lineage, as the store holds it."""

    steps: int
    flaws: tuple[str, ...]
    """What is missing, modified or inconsistent, one sentence each."""
    commits: Mapping[str, str | None]
    """Step → the commit it was computed at, with `+` if files differed from it; None if unknown."""
    identical: bool | None
    """Whether `cursus reproduce` recreated it byte for byte; None if that was not tried."""
    reproduction: str
    """The result of that reproduction, in a sentence; empty if it was not tried."""


@dataclass(frozen=True)
class Evidence:
    """Everything that criteria may read."""

    metrics: tuple[str, ...]
    """Metrics of the task family; verdicts use the first unless configured otherwise."""
    examples: int
    """Number of test examples that both models answered."""
    champion: bool
    """Whether there is a champion to compare with."""
    sections: tuple[Mapping[str, Any], ...]
    """Records of the judging step's evaluations, identified by their keys."""
    leakage: LeakageEvidence
    lineage: LineageEvidence

    def section(self, *keys: str) -> Mapping[str, Any] | None:
        """The first record that has all of `keys`; None if there is none."""
        return next((section for section in self.sections if all(key in section for key in keys)), None)
