"""What an evaluation shows to models, counted before there is one: a dry run tells from it how long that takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EvaluationSize:
    """What is asked of whom, as far as it is known before anything is read."""

    documents: int
    """Of the test table."""
    tokens: float
    """Of a document, about."""
    answers: int
    """That the task has; 1 where it is no choice."""
    models: int


@dataclass(frozen=True)
class ForwardPasses:
    """Rows that each model is shown, on average."""

    rows: float
    tokens: float
    """Of a row."""
    scored: float = 0.0
    """Tokens of a row for which the whole vocabulary is scored."""
