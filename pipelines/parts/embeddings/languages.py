"""Language embeddings (Lample & Conneau 2019, XLM §3.1)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pipelines.parts.embeddings import Embedding


class LanguageEmbedding(Embedding, name="languages"):
    """A vector for the language of each token."""

    paper = "arXiv:1901.07291"
    channel: ClassVar[str] = "languages"

    size: int = Field(16, gt=0)
    """Largest number of languages."""
