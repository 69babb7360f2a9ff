"""A binary tree over the words of a vocabulary from a file of IS-A relations (Morin & Bengio 2005, "Hierarchical
probabilistic neural network language model", §4).

Every word is below the term that it is a kind of. A term with more than two branches becomes a Huffman tree of them, by
the counts of the words below each; words that the file lacks are one more branch of the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from pathlib import Path

import numpy as np

from pipelines.errors import DataError
from pipelines.networks.word_trees import WordTree

ROOT = ""
"""What terms without a broader one are kinds of."""


@lru_cache(maxsize=4)
def read_taxonomy(path: Path) -> Mapping[str, str]:
    """Term → the broader term, in lower case, from lines of term, tab, broader term; the first line of a term counts.

    Lines that begin with # are remarks. Raises DataError naming the line that is none of these or closes a circle.
    """
    broader: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        terms = [term.strip().lower() for term in line.split("\t")]
        if len(terms) != 2 or not all(terms):
            raise DataError(
                f"{path}:{number}: a line has a term, a tab, and the term that it is a kind of; got {line!r}"
            )
        term, parent = terms
        if term in broader:
            continue
        if any(above == term for above in _upwards(broader, parent)):
            raise DataError(
                f"{path}:{number}: {term!r} would be a kind of itself, by way of {parent!r}; remove the line"
            )
        broader[term] = parent
    if not broader:
        raise DataError(f"{path}: no line has a term, a tab, and the term that it is a kind of")
    return broader


def taxonomy_tree(path: Path, words: Sequence[str], counts: Sequence[float]) -> WordTree:
    """The tree over `words` [V], with their `counts`, that the file gives.

    Raises DataError if the file knows none of the words.
    """
    broader = read_taxonomy(path)
    known = {*broader, *broader.values()}
    parents = set(broader.values())
    branches: dict[str, list[_Branch]] = {}
    others: list[_Branch] = []
    for number, word in enumerate(words):
        branch, term = (max(float(counts[number]), 1.0), number), word.lower()
        if term not in known:
            others.append(branch)
            continue
        # a word that others are kinds of is one branch of its own term
        branches.setdefault(term if term in parents else broader[term], []).append(branch)
    if not branches:
        raise DataError(
            f"backbone.taxonomy: {path} has none of the {len(words):,} words of the vocabulary, such as "
            f"{_example(words)}; give relations of these words, or another tokenizer"
        )
    terms = {term for one in branches for term in (one, *_upwards(broader, one))}
    merging = _Merging(len(words))
    # the narrowest first: a broader term has their trees among its branches
    for term in sorted(terms, key=lambda one: (-sum(1 for _ in _upwards(broader, one)), one)):
        branches.setdefault(broader.get(term, ROOT), []).append(merging.merged(branches.pop(term)))
    top = branches[ROOT]
    merging.merged([*top, merging.merged(others)] if others else top)
    return WordTree(merging.parents, merging.sides)


_Branch = tuple[float, int]
"""Count of the words in a branch, and its node."""


def _upwards(broader: Mapping[str, str], term: str) -> Iterable[str]:
    """`term`, and all broader terms of it."""
    at: str | None = term
    while at is not None:
        yield at
        at = broader.get(at)


def _example(words: Sequence[str]) -> str:
    return repr(next((word for word in words if word.isalpha()), words[-1]))


class _Merging:
    """Inner nodes of a tree over `size` words, numbered as they are made."""

    def __init__(self, size: int) -> None:
        self.parents = np.full(2 * size - 1, -1, dtype=np.int64)
        self.sides = np.zeros(2 * size - 1, dtype=np.int64)
        self.created = size

    def merged(self, branches: Iterable[_Branch]) -> _Branch:
        """One branch of all, by merging the two rarest again and again (Huffman 1952)."""
        heap = list(branches)
        heapify(heap)
        while len(heap) > 1:
            (one, left), (other, right) = heappop(heap), heappop(heap)
            self.parents[[left, right]] = self.created
            self.sides[right] = 1
            heappush(heap, (one + other, self.created))
            self.created += 1
        return heap[0]
