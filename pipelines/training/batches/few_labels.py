"""Subsets of the labelled examples, for learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pipelines.task_families import Row

MIN_EXAMPLES = 200
"""Minimum number of examples in an epoch. Fewer are repeated, so that few labels do not also mean few updates."""

R = TypeVar("R", bound="Row")


def subsample(rows: Sequence[R], number: int, seed: int, label: str | None) -> list[R]:
    """Draw `number` of `rows` by `seed`: first one of each value of the column `label`, if given, then any.

    The drawn rows are repeated in turn until there are MIN_EXAMPLES, or as many as in `rows`.
    """
    import numpy as np

    order = [int(index) for index in np.random.default_rng([seed, 5]).permutation(len(rows))]
    if label is not None:
        first: dict[object, int] = {}
        for index in order:
            first.setdefault(rows[index][label], index)
        ahead = set(first.values())
        order = [index for index in order if index in ahead] + [index for index in order if index not in ahead]
    chosen = order[:number]
    return [rows[chosen[turn % len(chosen)]] for turn in range(max(len(chosen), min(MIN_EXAMPLES, len(rows))))]
