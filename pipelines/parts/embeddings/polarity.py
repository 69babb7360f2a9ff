"""Embeddings of the polarity of words (Ke et al. 2020, SentiLARE §3.3)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pipelines.parts.embeddings import Embedding


class PolarityEmbedding(Embedding, name="polarity"):
    """A vector for the polarity of the word that a token is part of, added to that of the token."""

    paper = "arXiv:1911.02493"
    channel: ClassVar[str] = "polarity"

    size: int = Field(4, gt=0)
    """Number of vectors, as many as the channel has values."""
