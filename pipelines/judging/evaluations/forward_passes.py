"""Estimates of what an evaluation computes, available before any model exists: a dry run predicts its duration from
them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EvaluationSize:
    """Sizes of test table and task, as far as they are known before anything is computed."""

    documents: int
    """Documents of the test table."""
    tokens: float
    """Tokens per document, approximately."""
    answers: int
    """Number of possible answers of the task; 1 if it is no choice."""
    models: int
    """Number of judged models."""


@dataclass(frozen=True)
class ForwardPasses:
    """Rows that each model reads, on average."""

    rows: float
    """Number of rows."""
    tokens: float
    """Tokens per row."""
    scored: float = 0.0
    """Tokens per row for which logits over the whole vocabulary are computed."""
