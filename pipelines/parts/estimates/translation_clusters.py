"""Senses of a word as clusters of its translations, and every occurrence named after one (Guo, Che, Wang & Liu 2014,
"Learning Sense-specific Word Embeddings By Exploiting Bilingual Resources", §3).

Shapes: N tokens of a text and its translations, M translations of a word, H elements of a vector.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil

from pipelines.errors import DataError
from pipelines.parts.estimates.context_clusters import CLUSTERS, LABELS, TextContexts, informativeness
from pipelines.parts.estimates.word_alignment import PairedWords, aligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.parts.estimates import TokenFile

LINK_BYTES = 64
"""Memory of a source word beside a target word while pairs are aligned."""
DAMPING = 0.8
"""Damping of affinity propagation (Frey & Dueck 2007), which oscillates without."""


@dataclass(frozen=True)
class TranslationClusters:
    """Clusters of the translations of frequent words, and the text with a number for each word and sense: a unit of
    work.

    A text and its translation are neighbouring runs of `text`, each with the end of a document after it.
    """

    text: TokenFile
    vectors: Path
    """File with `vectors` [V, H]."""
    clustered: tuple[int, ...]
    """The words whose translations are clustered."""
    window: int
    fewest: int
    """Fewest occurrences of a translation, and of a sense."""
    translations: int
    """Most translations of a word, the most frequent ones."""
    rounds: int
    """Rounds of EM of the alignment."""

    @property
    def name(self) -> str:
        return "clusters"

    def __call__(self, folder: Path) -> None:
        size = self.text.vocabulary_size
        with np.load(self.vectors) as stored:
            vectors = stored["vectors"]
        tokens, weights = self.text.tokens.astype(np.int64), informativeness(self.text)
        runs = run_numbers(tokens, self.text.end)
        text = TextContexts(tokens, runs, vectors * weights[:, None], self.window)
        became = translations_of(tokens, runs, self.text, self.rounds)
        labels, owners, centres = tokens.astype(np.uint32), [np.arange(size)], [np.zeros_like(vectors)]
        further, others, total = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), size
        order = np.argsort(tokens, kind="stable")
        edges = np.searchsorted(tokens[order], np.arange(size + 1))
        for word in self.clustered:
            positions = order[edges[word] : edges[word + 1]]
            positions = positions[runs[positions] % 2 == 0]
            senses = self._senses(became[positions], vectors)
            number = int(senses.max(initial=0)) + 1
            contexts = text.at(positions)
            own_centres = np.stack([contexts[senses == one].sum(0) for one in range(number)])
            own_centres /= np.maximum(np.linalg.norm(own_centres, axis=1, keepdims=True), 1e-12)
            # without a known translation, the sense of the nearest centre
            senses = np.where(senses >= 0, senses, (contexts @ own_centres.T).argmax(1))
            numbers = np.asarray([word, *range(total, total + number - 1)], dtype=np.uint32)
            labels[positions] = numbers[senses]
            further[word], others[word] = total, number - 1
            centres[0][word] = own_centres[0]
            centres.append(own_centres[1:])
            owners.append(np.full(number - 1, word))
            total += number - 1
        labels.tofile(folder / LABELS)
        np.savez(
            folder / CLUSTERS,
            centres=np.concatenate(centres),
            owners=np.concatenate(owners),
            further=further,
            others=others,
            informativeness=weights,
        )

    def _senses(self, became: NDArray[np.int64], vectors: NDArray[np.float32]) -> NDArray[np.int64]:
        """int64 [n]: the sense of each occurrence by its translation `became` [n], the most frequent sense first; −1
        where the translation is none, or rare."""
        words, counts = np.unique(became[became >= 0], return_counts=True)
        order = np.argsort(-counts, kind="stable")[: self.translations]
        words = words[order][counts[order] >= self.fewest]
        groups = clusters_of(vectors[words])
        sense_of = np.full(len(vectors), -1, dtype=np.int64)
        sense_of[words] = groups
        senses: NDArray[np.int64] = np.where(became >= 0, sense_of[np.maximum(became, 0)], -1)
        number = np.bincount(senses[senses >= 0], minlength=1)
        ranked = np.argsort(-number, kind="stable")
        new = np.full(len(number), -1, dtype=np.int64)
        kept = ranked[number[ranked] >= self.fewest]
        new[kept] = np.arange(len(kept))
        return np.where(senses >= 0, new[np.maximum(senses, 0)], -1)


def run_numbers(tokens: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    """int64 [N]: number of the run of each token, its end included: even for a text, odd for its translation."""
    numbers: NDArray[np.int64] = np.cumsum(tokens == end) - (tokens == end)
    return numbers


def translations_of(
    tokens: NDArray[np.int64], runs: NDArray[np.int64], text: TokenFile, rounds: int
) -> NDArray[np.int64]:
    """int64 [N]: the word that each word of a text became in its translation, −1 for none; −1 in translations.

    Raises DataError for texts that are no pairs.
    """
    if text.counts[text.end] % 2:
        raise DataError(
            f"{text.path}: {text.counts[text.end]:,} texts are no pairs of a text and its translation; give the stage "
            "`texts` of two columns, and a corpus that has them"
        )
    words = ~np.isin(tokens, text.special)
    source, target = (np.flatnonzero(words & (runs % 2 == side)) for side in (0, 1))
    _require_memory(runs[source] // 2, runs[target] // 2, text)
    pairs = PairedWords(tokens[source], runs[source] // 2, tokens[target], runs[target] // 2, text.vocabulary_size)
    links = aligned(pairs, rounds)
    result = np.full(len(tokens), -1, dtype=np.int64)
    result[source[links >= 0]] = tokens[target[links[links >= 0]]]
    return result


def _require_memory(source: NDArray[np.int64], target: NDArray[np.int64], text: TokenFile) -> None:
    """Raise DataError for pairs whose words, every one beside every other, do not fit into memory."""
    sizes = [np.bincount(one, minlength=text.counts[text.end] // 2) for one in (source, target)]
    needed, free = LINK_BYTES * int((sizes[0] * sizes[1]).sum()), psutil.virtual_memory().available
    if needed > free:
        raise DataError(
            f"{text.path}: the alignment of {len(sizes[0]):,} pairs of texts needs {needed / 2**30:.1f} GiB, and "
            f"{free / 2**30:.1f} GiB of memory are free; read less text with budget.tokens, or give shorter texts"
        )


def clusters_of(vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """int64 [M]: number of the cluster of each of `vectors` [M, H], by affinity propagation over cosines (§3.2; Frey &
    Dueck 2007); all in one where it does not converge."""
    from sklearn.cluster import AffinityPropagation
    from sklearn.exceptions import ConvergenceWarning

    if len(vectors) < 2:
        return np.zeros(len(vectors), dtype=np.int64)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # then there are no clusters
        labels = AffinityPropagation(damping=DAMPING, affinity="precomputed", random_state=0).fit(unit @ unit.T).labels_
    return np.zeros(len(vectors), dtype=np.int64) if (labels < 0).any() else np.asarray(labels, dtype=np.int64)
