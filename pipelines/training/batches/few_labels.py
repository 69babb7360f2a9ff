"""Fewer labelled examples than there are: learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pipelines.task_families import Row

LEAST = 200
"""Examples of an epoch. Fewer are shown again, so that few labels do not also mean few updates."""

R = TypeVar("R", bound="Row")


def fewer(rows: Sequence[R], number: int, seed: int, label: str | None) -> list[R]:
    """`number` of `rows`, drawn by `seed`: one of each value of the column `label` first where it is given, then any.

    Repeated in turn until there are `LEAST`, or as many as `rows` had.
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
    return [rows[chosen[turn % len(chosen)]] for turn in range(max(len(chosen), min(LEAST, len(rows))))]
