"""What is known of a candidate and of the champion it would follow: plain values, gathered before anything is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CANDIDATE, CHAMPION = "candidate", "champion"
"""What the two models are called in the judging step: the stages of its record."""


@dataclass(frozen=True)
class LeakageEvidence:
    """What the leakage ledger of the dataset says."""

    dataset: str
    left_in: Mapping[str, int]
    """`table/part (kind)` → texts that overlap validation or test and were left in a table that is trained on."""
    removed: int
    """Texts that overlapped, and were taken out."""
    leaked: int
    """Test examples that stand elsewhere in their own set."""
    tested: int
    """Test examples."""
    trained_on_this: bool
    """Whether the candidate was trained on the very tables that the ledger is about."""


@dataclass(frozen=True)
class LineageEvidence:
    """The candidate's lineage, as the store holds it."""

    steps: int
    flaws: tuple[str, ...]
    """What is missing, changed or contradicts itself, a sentence each."""
    commits: Mapping[str, str | None]
    """Step → the commit it was computed at, with `+` where files differed from it; None where it is not known."""
    identical: bool | None
    """Whether `cursus reproduce` made it again byte for byte; None where nobody tried."""
    reproduction: str
    """What that found, in a sentence; empty where nobody tried."""


@dataclass(frozen=True)
class Evidence:
    """Everything a criterion may look at."""

    metrics: tuple[str, ...]
    """Of the task family, the first of which verdicts are about."""
    examples: int
    """Test examples that both models answered."""
    champion: bool
    """Whether there is one to compare with."""
    sections: tuple[Mapping[str, Any], ...]
    """The records of the judging step's evaluations: each is known by what it holds."""
    overlaps: LeakageEvidence
    descent: LineageEvidence

    def section(self, *keys: str) -> Mapping[str, Any] | None:
        """The first record that holds all of `keys`."""
        return next((section for section in self.sections if all(key in section for key in keys)), None)
