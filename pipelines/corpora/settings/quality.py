"""What a user may write under `quality:` of a dataset: the thresholds its tables are judged by."""

from __future__ import annotations

from pydantic import Field

from pipelines.corpora.settings.sources import Strict
from pipelines.parts.tokenizers import Tokenizer


class QualitySettings(Strict):
    """Labels are asked of tasks with classes; language, tokens and drift of every table."""

    min_examples_per_label: int = Field(default=1, ge=1)
    max_label_share: float = Field(default=0.95, gt=0, le=1)
    language_share: float = Field(default=0.5, ge=0, le=1)
    """At least this share of the characters of a table stands in texts of the dataset's language."""
    drift: float = Field(default=0.2, gt=0, le=1)
    """The Jensen-Shannon distance from the last accepted version, of answers and of lengths, above which a table is
    refused, when chance does not explain it."""
    tokenizer: Tokenizer = Field(default_factory=lambda: Tokenizer.model_validate("wordpiece"))
    """Trained on a sample of the unlabelled tables, and asked how it reads every table."""
    unknown_tokens: float = Field(default=0.02, ge=0, le=1)
    """At most this share of a table's tokens is unknown to that tokenizer."""
    fertility: float = Field(default=4.0, gt=0)
    """At most so many tokens a word, or a character where words are written without spaces."""
