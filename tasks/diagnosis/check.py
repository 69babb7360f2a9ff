"""The result of one check of `cursus doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """What a check means for a run: nothing stands in its way, something is worth knowing, or it will fail."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Check:
    """One line of the page: the subject, its state, and a sentence; of a problem, with what to do."""

    subject: str
    state: State
    sentence: str
