"""Recognise the names of columns among the examples of a file that has no header."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

COLUMN_WORDS = frozenset(
    [
        "answer", "body", "category", "class", "content", "context", "document", "gold_label", "hypothesis",
        "id", "idx", "index", "label", "labels", "premise", "question", "quality", "review",
        "score", "sentence", "sentence1", "sentence2", "sentence_a", "sentence_b", "sentiment", "source", "tag",
        "tags", "target", "text", "text1", "text2", "text_a", "text_b", "texts", "title",
        "topic",
    ]
)  # fmt: skip
"""What columns of published tables are called."""


def is_header(record: Mapping[str, Any], columns: Iterable[str]) -> bool:
    """Whether every value of `record` is the name of a column: one of `columns`, or what columns are usually called."""
    names = COLUMN_WORDS.union(name.lower() for name in columns)
    return all(isinstance(value, str) and value.strip().lower() in names for value in record.values())
