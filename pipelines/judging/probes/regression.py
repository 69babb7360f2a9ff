"""Softmax regression on hidden states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ITERATIONS = 200
"""Maximum number of L-BFGS iterations."""


def fit_softmax_regression(states: NDArray[np.float32], labels: NDArray[np.str_], penalty: float) -> Any:
    """Softmax regression of `labels` [N] on `states` [N, H], as a scikit-learn estimator."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=1 / penalty, max_iter=ITERATIONS))
    with warnings.catch_warnings():
        # a control task has no solution to converge to; its result after ITERATIONS is what it memorised
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(states.astype("float64"), labels)
