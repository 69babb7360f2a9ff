"""Classification metrics, as scikit-learn defines them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def accuracy(truth: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    """Share of `predicted` [N] that equals `truth` [N]."""
    return float((truth == predicted).mean())


def macro_f1(truth: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    """Unweighted mean of the F1 of each class that occurs in truth or prediction."""
    import numpy as np

    classes = int(max(truth.max(), predicted.max())) + 1
    hits = np.bincount(truth[truth == predicted], minlength=classes)
    total = np.bincount(truth, minlength=classes) + np.bincount(predicted, minlength=classes)
    present = total > 0
    return float((2 * hits[present] / total[present]).mean())
