"""Word embeddings of characters (Li et al. 2019, §3: characters and words)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pipelines.parts.embeddings import Embedding


class HashedWordEmbedding(Embedding, name="hashed_words"):
    """A vector for the word that a token is part of, added to that of the token."""

    paper = "arXiv:1905.05526"
    channel: ClassVar[str] = "hashed_words"

    size: int = Field(32_768, gt=0)
    """Number of vectors, as many as the annotation has values."""
