"""The trained models of the evaluations' tests, which the report of an execution shows."""

from __future__ import annotations

from tests.pipelines.judging.evaluations.conftest import trained

__all__ = ["trained"]
