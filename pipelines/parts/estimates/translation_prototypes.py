"""Several prototypes of a word, from clusters of its translations in aligned text (Guo, Che, Wang & Liu 2014, "Learning
Sense-specific Word Embeddings By Exploiting Bilingual Resources", §3)."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, PositiveInt

from pipelines.parts.estimates import CountingUnit, TokenFile
from pipelines.parts.estimates.prototype_training import PrototypeEstimation
from pipelines.parts.estimates.translation_clusters import TranslationClusters


class TranslationPrototypes(PrototypeEstimation, name="translation_prototypes"):
    """Vectors of words and of their translations; clusters of the translations of each word, which are its senses;
    vectors of words and senses.

    Words of a text and its translation are aligned by IBM's model 1, the translations of a word are clustered by
    affinity propagation over cosines of their vectors, and every occurrence is named after the cluster of its
    translation. A text alone has none: there the context decides, by the mean of the contexts that a sense had.
    """

    paper = "Guo, Che, Wang & Liu 2014"
    reads_pairs: ClassVar[bool] = True

    least: PositiveInt = 20
    """Fewest occurrences of a translation that counts, and of a sense."""
    translations: PositiveInt = 20
    """Most translations of a word, the most frequent ones."""
    rounds: int = Field(5, ge=1, le=100)
    """Rounds of EM of the alignment."""

    def clustered(self, text: TokenFile) -> tuple[int, ...]:
        return self.frequent(text, f"clusters the translations of words that occur {self.fewest} times or more")

    def clustering(self, text: TokenFile, vectors: Path, clustered: tuple[int, ...], window: int) -> CountingUnit:
        return TranslationClusters(text, vectors, clustered, window, self.least, self.translations, self.rounds)

    def tiny(self) -> Self:
        smaller = {"fewest": min(self.fewest, 10), "least": min(self.least, 2), "words": 20, "epochs": 1, "rounds": 1}
        return self.model_copy(update=smaller)
