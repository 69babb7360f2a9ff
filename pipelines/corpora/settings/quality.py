"""Settings under `quality:` of a dataset: thresholds of the data checks."""

from __future__ import annotations

from pydantic import Field

from pipelines.corpora.settings.sources import StrictSettings
from pipelines.parts.tokenizers import Tokenizer


class QualitySettings(StrictSettings):
    """Thresholds. Labels are checked in tasks with classes; language, tokens and drift in every table."""

    min_examples_per_label: int = Field(default=1, ge=1)
    max_label_share: float = Field(default=0.95, gt=0, le=1)
    language_share: float = Field(default=0.5, ge=0, le=1)
    """Minimum share of a table's characters in texts of the dataset's language."""
    drift: float = Field(default=0.2, gt=0, le=1)
    """Maximum Jensen-Shannon distance, of answers and of lengths, from the last accepted version; a larger one is
    refused unless chance explains it."""
    tokenizer: Tokenizer = Field(default_factory=lambda: Tokenizer.model_validate("wordpiece"))
    """Tokenizer that is trained on a sample of the unlabelled tables and measured on every table."""
    unknown_tokens: float = Field(default=0.02, ge=0, le=1)
    """Maximum share of unknown tokens in a table."""
    fertility: float = Field(default=4.0, gt=0)
    """Maximum tokens per word, or per character in scripts without spaces."""
