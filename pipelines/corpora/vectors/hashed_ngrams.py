"""Hashed n-grams: tf-idf of the words and word pairs of a text, reduced to few dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pipelines.corpora.vectors import TextVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from pipelines.corpora.vectors import Encode

_HAN_AND_KANA = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = rf"[{_HAN_AND_KANA}]|[^\W_{_HAN_AND_KANA}]+"
"""A run of letters and digits; every Han or kana character is a word of its own."""


class HashedNgrams(TextVectors, name="hashed_ngrams"):
    """Counts of hashed n-grams, tf-idf, and latent semantic analysis.

    Hashing (Weinberger et al. 2009) needs no vocabulary; projection on the singular vectors of a sample (Deerwester et
    al. 1990) makes related texts similar that share no word. Like VAMPIRE in Gururangan et al. 2020 this is a
    bag-of-words embedding, cheap enough for millions of texts; VAMPIRE is a variational autoencoder, and must be
    trained first.
    """

    paper = "Deerwester et al. 1990"
    libraries: ClassVar[tuple[str, ...]] = ("numpy", "scikit-learn", "scipy")

    longest: int = Field(default=2, ge=1, le=5)
    """Words in the longest n-gram."""
    buckets: int = Field(default=2**15, ge=2**8, le=2**22)
    """Values of the hash."""
    dimensions: int = Field(default=128, ge=2, le=1024)
    """Dimensions of a vector: number of singular vectors."""
    sample: int = Field(default=4096, ge=100)
    """Texts on which weights and singular vectors are fitted, drawn evenly from the task's and the domain's texts."""

    @property
    def learns_from(self) -> int:
        return self.sample

    def learn(self, texts: Sequence[str], folder: Path) -> None:
        import numpy as np
        from sklearn.decomposition import TruncatedSVD
        from threadpoolctl import threadpool_limits

        counts = self._counts(texts)
        times = np.asarray((counts > 0).sum(axis=0)).ravel()
        rarity = (np.log((1 + len(texts)) / (1 + times)) + 1).astype(np.float32)
        weighted = self._weighted(counts, rarity)
        # there are no more singular vectors than texts
        components = max(1, min(self.dimensions, len(texts) - 1, self.buckets - 1))
        with threadpool_limits(1):
            directions = TruncatedSVD(components, random_state=0, n_iter=4).fit(weighted).components_
        np.save(folder / "rarity.npy", rarity)
        np.save(folder / "directions.npy", directions.astype(np.float32))

    def encoder(self, folder: Path, root: Path) -> Encode:
        import numpy as np

        rarity: NDArray[np.float32] = np.load(folder / "rarity.npy")
        directions = np.ascontiguousarray(np.load(folder / "directions.npy").T)

        def encode(texts: Sequence[str]) -> NDArray[np.float32]:
            from sklearn.preprocessing import normalize

            dense = self._weighted(self._counts(texts), rarity) @ directions
            return np.asarray(normalize(dense, copy=False), dtype=np.float32)

        return encode

    def _counts(self, texts: Sequence[str]) -> csr_matrix:
        import numpy as np
        from sklearn.feature_extraction.text import HashingVectorizer

        hashed = HashingVectorizer(
            token_pattern=WORD,
            ngram_range=(1, self.longest),
            n_features=self.buckets,
            alternate_sign=False,
            norm=None,
            dtype=np.float32,
        )
        return hashed.transform(texts)

    def _weighted(self, counts: csr_matrix, rarity: NDArray[np.float32]) -> csr_matrix:
        """(1 + log tf) · idf, rows normalised to unit length."""
        import numpy as np
        from sklearn.preprocessing import normalize

        weighted = counts.copy()
        weighted.data = (1 + np.log(weighted.data)) * rarity[weighted.indices]
        return normalize(weighted, copy=False)
