"""Words by their topics: latent Dirichlet allocation over the documents of a text (Blei, Ng & Jordan 2003)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from pipelines.errors import DataError
from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.parts.estimates.lsa import document_counts
from pipelines.parts.estimates.weighted_neighbours import require_words
from pipelines.vocabulary import Ability

TINY = 1e-12
"""Deviation of vectors below which words say nothing of topics."""

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig


class LatentDirichlet(Estimation, name="latent_dirichlet"):
    """A word's vector is the probability of each topic given the word: as many topics as the vector has elements.

    Topics are those of scikit-learn, by variational Bayes over small batches of documents (Hoffman, Blei & Bach 2010),
    from weights that are random by the seed of the stage. With λ, the expected counts [K, V] of a word in a topic,

        p(topic | word) = λ(topic, word) / Σ over topics λ(topic, word)

    An element is that, times the number of topics, minus 1: 0 where the word says nothing of the topic; all are scaled
    to a common `deviation`. Special tokens are no words: their vectors are 0, and so are those of words that the text
    does not contain.
    """

    paper = "Blei, Ng & Jordan 2003"
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.STATIC})
    draws: ClassVar[bool] = True

    epochs: int = Field(2, ge=1, le=1000)
    """Passes over the documents. With tens of thousands of them few are enough (Hoffman et al. 2010, §4)."""
    batch_documents: int = Field(128, ge=1)
    """Documents of one update of the topics."""
    deviation: float = Field(0.1, gt=0)
    """Standard deviation of the elements (Turian et al. 2010, Scaling of word embeddings). Unscaled, a word of one of a
    hundred topics has a vector of length 99, beside which what labels teach of the word is nothing."""

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        require_words(text, self.name)
        counts = document_counts(text).T.tocsr()
        topics = int(config.hidden_size)
        real = np.flatnonzero(np.diff(counts.tocsc().indptr))
        filled = np.diff(counts.indptr) > 0
        if topics >= min(int(filled.sum()), len(real)):
            raise DataError(
                f"{text.path}: {int(filled.sum())} documents of {len(real)} words have no {topics} topics; lower "
                "backbone.hidden_size, or give the stage more text"
            )
        expected = self.topic_counts(counts[filled][:, real], topics, workspace.seed)
        vectors = np.zeros((text.vocabulary_size, topics), dtype=np.float32)
        says = topics * (expected / expected.sum(axis=0)).T - 1
        vectors[real] = says * (self.deviation / max(float(says.std()), TINY))
        return {"embeddings.weight": vectors}

    def topic_counts(self, counts: Any, topics: int, seed: int = 0) -> NDArray[np.float64]:
        """λ [K, V] of a sparse matrix [D, V] of the occurrences of words in documents."""
        from sklearn.decomposition import LatentDirichletAllocation

        model = LatentDirichletAllocation(
            topics, learning_method="online", max_iter=self.epochs, batch_size=self.batch_documents,
            total_samples=counts.shape[0], random_state=seed,
        )  # fmt: skip
        expected: NDArray[np.float64] = model.fit(counts).components_
        return expected

    def tiny(self) -> Self:
        return self.model_copy(update={"epochs": min(self.epochs, 2)})
