"""Word vectors by gensim: the same words, windows, noise, subsampling and rate, in one worker thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.parts.estimates.word2vec import Word2Vec


class GensimVectors:
    """A model whose vocabulary is given, before it is trained."""

    def __init__(self, estimate: Word2Vec, counts: Mapping[str, int], texts: int, width: int, seed: int) -> None:
        from gensim.models import Word2Vec as Peer

        tree = estimate.output == "tree"
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
        self._model.build_vocab_from_freq(dict(counts), corpus_count=texts)

    def train(self, sentences: Sequence[Sequence[str]], epochs: int) -> None:
        """Read the sentences `epochs` times."""
        self._model.train(sentences, total_examples=len(sentences), epochs=epochs)

    def vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """float32 [V, H]: vectors of `words`; 0 for those that it has not."""
        index, vectors = self._model.wv.key_to_index, self._model.wv.vectors
        table = np.zeros((len(words), vectors.shape[1]), dtype=np.float32)
        for number, word in enumerate(words):
            if word in index:
                table[number] = vectors[index[word]]
        return table
