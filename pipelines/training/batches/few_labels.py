"""Subsets of the labelled examples, for learning curves."""

from __future__ import annotations

from collections.abc import Sequence

MIN_EXAMPLES = 200
"""Minimum number of examples in an epoch. Fewer are repeated, so that few labels do not also mean few updates."""


def subsample(total: int, number: int, seed: int, labels: Sequence[object] | None = None) -> list[int]:
    """Draw the indices of `number` of `total` examples by `seed`: first one of each of `labels`, if given, then any.

    The drawn ones are repeated in turn until there are MIN_EXAMPLES, or `total`.
    """
    import numpy as np

    order: list[int] = np.random.default_rng([seed, 5]).permutation(total).tolist()
    if labels is not None:
        first: dict[object, int] = {}
        for index in order:
            first.setdefault(labels[index], index)
        ahead = set(first.values())
        order = [index for index in order if index in ahead] + [index for index in order if index not in ahead]
    chosen = order[:number]
    return [chosen[turn % len(chosen)] for turn in range(max(len(chosen), min(MIN_EXAMPLES, total)))]
