"""What a user may write under `deduplicate:` and `decontaminate:` of a dataset."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.corpora.settings.sources import Strict


class DeduplicateSettings(Strict):
    """Of texts that are the same the one nearest to the evaluation stays, of nearly the same plain texts the first."""

    near: float | None = Field(default=0.8, gt=0.3, le=1)
    """Jaccard index of their sets of runs of `words` words from which two texts are near copies; null: no text is."""
    words: int = Field(default=5, ge=1)
    """Han and kana characters are words of their own; where words are not parted by spaces, letters are counted."""
    paragraphs: int | None = Field(default=None, ge=20)
    """Paragraphs of at least so many characters stay only where they stand first; null: repeats stay."""


class DecontaminateSettings(Strict):
    """What overlaps validation or test, and what becomes of it.

    Texts overlap when they are the same, when they share at least `overlap` of one's runs of `words` words, or when they are
    near copies.
    """

    words: int = Field(default=13, ge=2)
    overlap: float = Field(default=0.5, gt=0, le=1)
    near: float | None = Field(default=0.8, gt=0.3, le=1)
    """Jaccard index of their sets of runs of five words from which two texts are near copies; null: no text is."""
    action: Literal["drop", "warn", "fail"] = "drop"
    """What becomes of plain text that overlaps: it goes; it stays and is in the ledger; the step ends with an error."""
    inside: Literal["drop", "keep"] = "drop"
    """Whether repeats and overlaps inside the labelled set go, or the set stays as it was published and they are in the
    ledger, and leaks.parquet says which test rows are clean."""
