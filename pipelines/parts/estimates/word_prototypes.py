"""Several prototypes of each frequent word, from clusters of its contexts (Huang, Socher, Manning & Ng 2012, "Improving
Word Representations via Global Context and Multiple Word Prototypes", §3)."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, PositiveInt, model_validator

from pipelines.parts.estimates import CountingUnit, TokenFile
from pipelines.parts.estimates.context_clusters import ContextClusters
from pipelines.parts.estimates.prototype_training import PrototypeEstimation


class WordPrototypes(PrototypeEstimation, name="word_prototypes"):
    """Vectors of words; clusters of the contexts of each frequent one; vectors of words and clusters.

    A context is the mean of the words around, weighted by the inverse of the share of documents that have them.
    Spherical k-means makes clusters of a word's contexts, every occurrence is named after its cluster, and vectors are
    trained again on the text with these names. With `clusters: 1` each word has one vector, trained as long.
    """

    paper = "Huang, Socher, Manning & Ng 2012"

    clusters: int = Field(10, ge=1, le=1000)
    """Most prototypes of a word."""
    contexts: PositiveInt = 2000
    """Contexts of a word from which the centres of its clusters are made; every occurrence then has a cluster."""

    @model_validator(mode="after")
    def _enough_contexts(self) -> Self:
        if min(self.fewest, self.contexts) < self.clusters:
            key = "fewest" if self.fewest <= self.contexts else "contexts"
            raise ValueError(
                f"{key}: {min(self.fewest, self.contexts)} contexts cannot make {self.clusters} clusters; raise {key} "
                f"to {self.clusters} or more, or lower clusters"
            )
        return self

    def clustered(self, text: TokenFile) -> tuple[int, ...]:
        purpose = f"makes {self.clusters} clusters of at least {self.fewest} contexts of a word"
        return () if self.clusters == 1 else self.frequent(text, purpose)

    def clustering(self, text: TokenFile, vectors: Path, clustered: tuple[int, ...], window: int) -> CountingUnit:
        return ContextClusters(text, vectors, clustered, self.clusters, window, self.contexts)

    def tiny(self) -> Self:
        smaller = {"clusters": min(self.clusters, 2), "fewest": min(self.fewest, 10), "words": 20, "epochs": 1}
        return self.model_copy(update=smaller)
