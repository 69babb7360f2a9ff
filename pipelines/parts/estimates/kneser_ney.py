"""Interpolated Kneser-Ney smoothing (Kneser & Ney 1995), modified (Chen & Goodman 1999) or with a single discount."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.parts.estimates.ngram_counts import NgramTable, chunks, count_ngrams, mapped, require_ngrams
from pipelines.parts.estimates.ngram_pruning import threshold_of, without_rare
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig

DISTINGUISHED = 3
"""Counts with a discount of their own: 1, 2, and 3 or more."""
FALLBACK = (0.5, 1.0, 1.5)
"""Discounts of an order whose counts of counts define none, as where nothing occurs once (KenLM's)."""


class KneserNey(Estimation, name="kneser_ney"):
    """Every order is discounted and interpolated with the order below, the lowest with the uniform distribution.

        p(w | h) = max(a(hw) − D(a), 0) / Σ a(h·) + γ(h) p(w | h′),   γ(h) = Σ D(a(h·)) / Σ a(h·)

    where a is the count in the text at the highest order, and at lower ones the number of different tokens before; the
    count, for n-grams that begin a document, which nothing precedes. `modified` has discounts for a = 1, 2, 3 and more,
    estimated from counts of counts (Chen & Goodman 1999, eq. 26); `single` has n₁ / (n₁ + 2 n₂) for all (Ney et al.
    1994).
    """

    paper = "Chen & Goodman 1999"
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.COUNTED, Ability.CAUSAL})

    discounts: Literal["modified", "single"] = "modified"
    """Whether counts of 1, 2 and more are discounted differently."""
    discount: float | None = Field(None, gt=0, lt=1)
    """A discount for all counts of all orders; if absent, discounts are estimated."""
    prune: tuple[int, ...] = Field((), exclude_if=lambda thresholds: not thresholds)
    """Largest count of n-grams that are left out, by order from unigrams; the last is that of all higher orders: with
    [0, 0, 1], trigrams and longer ones that occur once."""

    @model_validator(mode="after")
    def _prunes_what_it_can(self) -> Self:
        if any(after < before for before, after in pairwise(self.prune)) or self.prune[:1] > (0,):
            raise ValueError(
                f"prune: {list(self.prune)}: begin with 0, since every word is kept, and do not fall from order to "
                "order: an n-gram needs the shorter ones in it"
            )
        return self

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        require_ngrams(text, int(config.order))
        tables = count_ngrams(text, int(config.order), workspace)
        smoothed = SmoothedNgrams(text, tables, self, workspace.folder)
        weights = smoothed.weights
        if any(self.prune):
            weights = without_rare(weights, tables, self.prune, text.vocabulary_size, workspace.folder)
        config.ngrams = [len(weights[f"tables.{number}.log_probs"]) for number in range(len(tables) + 1)]
        config.discounts = [[round(float(one), 6) for one in discounts] for discounts in smoothed.discounts]
        return weights

    def discounts_of(self, counts: NDArray[np.int64]) -> tuple[float, ...]:
        """Discounts of the counts 1, 2, and 3 or more of an order, from its `counts` of n-grams [n]."""
        if self.discount is not None:
            return (self.discount,) * DISTINGUISHED
        occurring = counts_of_counts(counts).tolist()
        once, twice = occurring[:2]
        if not once or not twice:
            return FALLBACK if self.discounts == "modified" else (FALLBACK[0],) * DISTINGUISHED
        ratio = once / (once + 2 * twice)
        if self.discounts == "single":
            return (ratio,) * DISTINGUISHED
        if not all(occurring[:DISTINGUISHED]):
            return FALLBACK
        result = tuple(k - (k + 1) * ratio * occurring[k] / occurring[k - 1] for k in range(1, DISTINGUISHED + 1))
        return result if all(0 <= discount <= k for k, discount in enumerate(result, 1)) else FALLBACK


class SmoothedNgrams:
    """Probabilities and back-off weights of counted n-grams, from the lowest order to the highest.

    Shapes: n the n-grams of an order, c those of the order below, which are its contexts.
    """

    def __init__(self, text: TokenFile, tables: Sequence[NgramTable], estimate: KneserNey, folder: Path) -> None:
        self.folder, self.prune, self.tables = folder, estimate.prune, tables
        self.discounts: list[tuple[float, ...]] = []
        """By order, unigrams first: discounts of counts 1, 2, and 3 or more."""
        self.weights: dict[str, NDArray[Any]] = {}
        """Keys int64 [n], log-probabilities float32 [n] and back-off weights float32 [n], in logs, of every order."""
        size = text.vocabulary_size
        for number in range(len(tables) + 1):
            counts = adjusted_counts(text, tables, number)
            self.discounts.append(estimate.discounts_of(counts))
            table = np.asarray([0.0, *self.discounts[-1]])
            if not number:
                taken = np.minimum(table[np.minimum(counts, DISTINGUISHED)], counts)
                # the lowest order is interpolated with the uniform distribution over the vocabulary
                shares = (counts - taken + taken.sum() / size) / counts.sum()
            else:
                keys, suffixes = tables[number - 1].keys, tables[number - 1].suffixes
                self.weights[f"tables.{number}.keys"] = keys
                shares = self._interpolated(number, counts, table, keys // size, suffixes, shares)
            self._store(f"tables.{number}.log_probs", np.log(shares))

    def _interpolated(
        self,
        number: int,
        counts: NDArray[np.int64],
        discounts: NDArray[np.float64],
        contexts: NDArray[np.int64],
        suffixes: NDArray[np.int32],
        below: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """float64 [n]: probability of the last token of each n-gram after its context, from those of the order `below`
        [c]; stores the back-off weights of the contexts."""
        total, withheld = np.zeros(len(below)), np.zeros(len(below))
        rarest = threshold_of(self.prune, number)
        for part in chunks(len(counts)):
            first = int(contexts[part.start])
            width = int(contexts[part.stop - 1]) - first + 1
            total[first : first + width] += np.bincount(contexts[part] - first, counts[part], width)
            taken = np.minimum(discounts[np.minimum(counts[part], DISTINGUISHED)], counts[part])
            if rarest:
                # of an n-gram that is left out, everything is withheld
                taken = np.where(self.tables[number - 1].counts[part] <= rarest, counts[part], taken)
            withheld[first : first + width] += np.bincount(contexts[part] - first, taken, width)
        # a context that nothing follows, as the end of a document, leaves everything to the order below
        backoffs = np.divide(withheld, total, out=np.ones_like(total), where=total > 0)
        self._store(f"tables.{number - 1}.backoffs", np.log(backoffs))
        shares = np.empty(len(counts))
        for part in chunks(len(counts)):
            taken = np.minimum(discounts[np.minimum(counts[part], DISTINGUISHED)], counts[part])
            shares[part] = (counts[part] - taken) / total[contexts[part]]
            shares[part] += backoffs[contexts[part]] * below[suffixes[part]]
        return shares

    def _store(self, name: str, values: NDArray[np.float64]) -> None:
        """Keep float32 weights in a file, so that all orders together take no memory."""
        path = self.folder / f"{name}.bin"
        values.astype(np.float32).tofile(path)
        self.weights[name] = mapped(path, "float32")


def adjusted_counts(text: TokenFile, tables: Sequence[NgramTable], number: int) -> NDArray[np.int64]:
    """int64 [n]: counts of the n-grams of `tables[number - 1]`, or of the unigrams for 0: in the text at the highest
    order, else the number of different tokens before; the count in the text for an n-gram that begins a document."""
    raw = np.asarray(text.counts, dtype=np.int64) if not number else tables[number - 1].counts
    if number == len(tables):
        return raw
    result = np.zeros(len(raw), dtype=np.int64)
    suffixes = tables[number].suffixes
    for part in chunks(len(suffixes)):
        np.add.at(result, suffixes[part], 1)
    if number:  # an end of document is itself no beginning: as a unigram, it ends a document
        begin, end = _beginning(text, tables[:number])
        result[begin:end] = raw[begin:end]
    return result


def _beginning(text: TokenFile, tables: Sequence[NgramTable]) -> tuple[int, int]:
    """Range of the n-grams of the last of `tables` whose first token is an end of document."""
    begin, end = text.end, text.end + 1
    for table in tables:
        begin, end = np.searchsorted(table.keys, np.asarray([begin, end]) * text.vocabulary_size).tolist()
    return begin, end


def counts_of_counts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 [4]: the number of n-grams with the count 1, 2, 3 and 4."""
    largest = DISTINGUISHED + 2
    result = np.zeros(largest + 1, dtype=np.int64)
    for part in chunks(len(counts)):
        result += np.bincount(np.minimum(counts[part], largest), minlength=largest + 1)
    return result[1:largest]
