"""Ground truth of heads that classify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.components import listed
from pipelines.errors import DataError
from pipelines.parts.heads.token_rows import column
from pipelines.task_families.excerpt import number_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families import Row, Task


def class_labels(examples: Sequence[Row], task: Task) -> NDArray[np.int64]:
    """int64 [examples]: the class of each. Raises DataError for a label that no training example has."""
    indices = {label: index for index, label in enumerate(task.labels)}
    given = column(examples, "label")
    if (unknown := next((at for at, one in enumerate(given) if one not in indices), None)) is not None:
        raise DataError(
            f"example {number_of(examples, unknown)}: no training example has its label {given[unknown]!r}; known: "
            f"{listed(indices)}"
        )
    return np.asarray([indices[one] for one in given], dtype=np.int64)
