"""Accuracy of grouped questions: over all questions, and as the mean over groups, so that large groups do not
dominate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def group_statistics(right: Sequence[bool], groups: Sequence[str]) -> NDArray[np.float64]:
    """[N, 2]: 1 for a correct answer; index of its group."""
    import numpy as np

    group_index = {name: index for index, name in enumerate(sorted(set(groups)))}
    rows = [(correct, group_index[group]) for correct, group in zip(right, groups, strict=True)]
    return np.asarray(rows, dtype=np.float64).reshape(-1, 2)


def accuracies(statistics: NDArray[np.float64]) -> tuple[float, float]:
    """Accuracy over all questions, and the mean accuracy of the groups that occur."""
    import numpy as np

    right, group = statistics[:, 0], statistics[:, 1].astype(np.int64)
    size = np.bincount(group)
    of_group = np.bincount(group, right)[size > 0] / size[size > 0]
    return float(right.mean()), float(of_group.mean())
