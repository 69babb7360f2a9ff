"""Span extraction from a text that comes with its translation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pipelines.task_families import Problem, Row, empty_text_problem
from pipelines.task_families.span_extraction import SpanExtraction


class TranslatedSpans(SpanExtraction, name="translated_spans"):
    """The span of a text that answers a question, both of which are given in another language too; scored as span
    extraction.

    The answer is in `context`; `source_context` and `source_question` are their translations, by a machine as a rule.
    """

    paper: ClassVar[str] = "arXiv:1909.00361"
    columns: ClassVar[dict[str, str]] = {
        **SpanExtraction.columns,
        "source_context": "string",
        "source_question": "string",
    }

    def text(self, row: Row) -> str:
        """Questions and texts of both languages."""
        return "\n".join([super().text(row), row["source_question"], row["source_context"]])

    def problem(self, row: Row) -> Problem | None:
        """As for span extraction, or an empty translation."""
        return super().problem(row) or empty_text_problem(row, "source_context", "source_question")

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`translated question: … translated context: … question: … context: … answer:`"""
        translated = f"translated question: {row['source_question']} translated context: {row['source_context']}"
        return f"{translated} {super().source(row, labels)}"
