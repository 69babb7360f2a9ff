"""Settings under `deduplicate:` and `decontaminate:` of a dataset."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.corpora.settings.sources import StrictSettings


class DeduplicateSettings(StrictSettings):
    """Deduplication: of identical texts the one closest to the evaluation is kept, of near copies in plain text the
    first."""

    near: float | None = Field(default=0.8, gt=0.3, le=1)
    """Jaccard index of word n-gram sets (n = `words`) above which two texts are near copies; null: off."""
    words: int = Field(default=5, ge=1)
    """n of the n-grams. Each Han or kana character is a word; in other scripts without spaces, letters are counted."""
    paragraphs: int | None = Field(default=None, ge=20)
    """Paragraphs of at least so many characters are kept only at their first occurrence; null: repeats are kept."""


class DecontaminateSettings(StrictSettings):
    """Decontamination: training text that overlaps validation or test, and what to do with it.

    Texts overlap when they are identical, when they share at least `overlap` of the word n-grams (n = `words`) of one
    of them, or when they are near copies.
    """

    words: int = Field(default=13, ge=2)
    overlap: float = Field(default=0.5, gt=0, le=1)
    near: float | None = Field(default=0.8, gt=0.3, le=1)
    """Jaccard index of sets of word 5-grams above which two texts are near copies; null: off."""
    action: Literal["drop", "warn", "fail"] = "drop"
    """Plain text that overlaps: drop it; keep it and record it in the ledger; fail the step."""
    inside: Literal["drop", "keep"] = "drop"
    """Repeats and overlaps inside the labelled set: drop them, or keep the set as published, record them in the ledger
    and mark the clean test rows in leaks.parquet."""
