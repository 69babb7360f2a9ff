"""Embeddings of parts of speech (Ke et al. 2020, SentiLARE §3.3)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pipelines.parts.embeddings import Embedding


class PartOfSpeechEmbedding(Embedding, name="part_of_speech"):
    """A vector for the part of speech of the word that a token is part of, added to that of the token."""

    paper = "arXiv:1911.02493"
    channel: ClassVar[str] = "part_of_speech"

    size: int = Field(6, gt=0)
    """Number of vectors, as many as the channel has values."""
