"""Vectors beside tokens as part of a backbone's input (Su et al. 2020, VL-BERT §3.2)."""

from __future__ import annotations

from typing import ClassVar

from pipelines.parts.embeddings import ProjectedEmbedding


class VectorEmbedding(ProjectedEmbedding, name="vectors"):
    """The vector beside each token, projected to the width of the backbone."""

    paper = "arXiv:1908.08530"
    channel: ClassVar[str] = "vectors"
