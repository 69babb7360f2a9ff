"""Pruning: rare n-grams are left out, and what they had is given to the order below (cut-offs of Seymore & Rosenfeld
1996, as `--prune` of KenLM's lmplz).

Discounts come from all n-grams, as before. An n-gram whose count in the text is at most the threshold of its order has
no entry; its whole count, instead of its discount, enters the back-off weight of its context, so that each distribution
still sums to one. Thresholds do not fall from order to order: the first and the last n − 1 tokens of an n-gram occur as
often as it does, and are kept where it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.parts.estimates.ngram_counts import NgramTable, chunks, mapped

if TYPE_CHECKING:
    from numpy.typing import NDArray


def threshold_of(thresholds: Sequence[int], number: int) -> int:
    """Largest count that is left out of the order `number`, unigrams 0; the last threshold is that of all above."""
    return thresholds[min(number, len(thresholds) - 1)] if thresholds else 0


def without_rare(
    weights: Mapping[str, NDArray[Any]],
    tables: Sequence[NgramTable],
    thresholds: Sequence[int],
    vocabulary: int,
    folder: Path,
) -> dict[str, NDArray[Any]]:
    """`weights` of all n-grams without those that `thresholds` leave out; keys are those of the contexts that are kept.

    The new tables are files in `folder`.
    """
    result = dict(weights)
    renumbered = np.arange(vocabulary, dtype=np.int64)
    for number, table in enumerate(tables, start=1):
        kept = np.flatnonzero(table.counts > threshold_of(thresholds, number))
        keys = table.keys
        path = folder / f"pruned-{number}.bin"
        with path.open("wb") as file:
            for part in chunks(len(kept)):
                chosen = keys[kept[part]]
                (renumbered[chosen // vocabulary] * vocabulary + chosen % vocabulary).tofile(file)
        result[f"tables.{number}.keys"] = mapped(path, "int64")
        for name in ("log_probs", "backoffs"):
            if (values := weights.get(f"tables.{number}.{name}")) is not None:
                result[f"tables.{number}.{name}"] = values[kept]
        renumbered = np.full(len(keys), -1, dtype=np.int64)
        renumbered[kept] = np.arange(len(kept))
    return result
