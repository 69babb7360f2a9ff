"""Pair classification: one label for two texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pipelines.task_families import Row
from pipelines.task_families.text_classification import TextClassification


class PairClassification(TextClassification, name="pair_classification"):
    """One label for two texts, as in natural language inference and paraphrase; scored like text classification."""

    paper: ClassVar[str] = "arXiv:1804.07461"
    is_single_text: ClassVar[bool] = False
    columns: ClassVar[dict[str, str]] = {"text_a": "string", "text_b": "string", "label": "string"}

    def text(self, row: Row) -> str:
        """The two texts, one after the other."""
        return f"{row['text_a']}\n{row['text_b']}"

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`first: … second: … label:`"""
        return f"first: {row['text_a']} second: {row['text_b']} label:"
