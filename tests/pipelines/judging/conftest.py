"""The trained models of the evaluations' tests, in which words are looked up, too."""

from __future__ import annotations

from tests.pipelines.judging.evaluations.conftest import trained

__all__ = ["trained"]
