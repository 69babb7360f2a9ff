"""Vectors of words and paragraphs by gensim, of the same words, windows, noise, subsampling and rate, in one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.peers.shared_text import SharedText
    from pipelines.parts.estimates.paragraph_vectors import ParagraphVectors
    from pipelines.parts.estimates.word2vec import Word2Vec


class GensimWords:
    """Word vectors; the vocabulary is given before they are trained."""

    def __init__(self, estimate: Word2Vec, text: SharedText, width: int, seed: int) -> None:
        from gensim.models import Word2Vec as Peer

        tree = estimate.output == "tree"
        self._text, self._epochs = text, estimate.epochs
        self._model: Any = Peer(
            vector_size=width,
            window=estimate.window,
            sg=int(estimate.architecture == "skip_gram"),
            hs=int(tree),
            negative=0 if tree else estimate.samples,
            ns_exponent=estimate.power,
            sample=estimate.threshold,
            alpha=estimate.lr,
            min_count=1,
            workers=1,
            seed=seed,
        )
        self._model.build_vocab_from_freq(dict(text.counts), corpus_count=len(text.sentences))

    def train(self) -> None:
        """Read the text in all epochs."""
        sentences = self._text.sentences
        self._model.train(sentences, total_examples=len(sentences), epochs=self._epochs)

    @property
    def vectors(self) -> NDArray[np.float32]:
        """float32 [V, H]: vectors of the text's words; 0 for what is none."""
        index, vectors = self._model.wv.key_to_index, self._model.wv.vectors
        table = np.zeros((len(self._text.vocabulary), vectors.shape[1]), dtype=np.float32)
        for number, word in enumerate(self._text.vocabulary):
            if word in index:
                table[number] = vectors[index[word]]
        return table


class GensimParagraphs:
    """Paragraph vectors; the vocabulary is read before they are trained."""

    def __init__(self, estimate: ParagraphVectors, text: SharedText, architecture: str, width: int, seed: int) -> None:
        from gensim.models.doc2vec import Doc2Vec, TaggedDocument

        from pipelines.networks.paragraph_vectors import ParagraphVectorsConfig

        self._text, self._epochs = text, estimate.epochs
        self._documents = [TaggedDocument(words, [number]) for number, words in enumerate(text.sentences)]
        self._model: Any = Doc2Vec(
            vector_size=width,
            window=ParagraphVectorsConfig.window,
            dm=int(architecture == "dm"),
            dm_mean=1,
            negative=estimate.samples,
            ns_exponent=estimate.power,
            sample=estimate.threshold,
            alpha=estimate.lr,
            epochs=estimate.epochs,
            min_count=1,
            workers=1,
            seed=seed,
        )
        self._model.build_vocab(self._documents)

    def train(self) -> None:
        """Read the text in all epochs."""
        self._model.train(self._documents, total_examples=len(self._documents), epochs=self._epochs)

    def features(self, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """float32 [T, H]: vectors of new texts, inferred with the words frozen."""
        vocabulary = self._text.vocabulary
        words = ([vocabulary[token] for token in text] for text in texts)
        return np.stack([self._model.infer_vector(one) for one in words])
