"""Calls of ONNX graphs with NumPy arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.networks.onnx_graph import open_onnx
from pipelines.serving.runtimes import Compute
from pipelines.serving.runtimes.model_inputs import select_inputs


def onnx_compute(path: Path, threads: int) -> Compute:
    """The graph in `path` under ONNX Runtime. Raises DataError if it cannot be read."""
    opened = open_onnx(path, threads)
    inputs = [entry.name for entry in opened.get_inputs()]

    def compute(
        ids: NDArray[np.int64], mask: NDArray[np.int64], types: NDArray[np.int64] | None = None, /
    ) -> NDArray[np.float32]:
        outputs = opened.run(None, select_inputs(inputs, (ids, mask, types)))[0]
        return np.asarray(outputs, dtype=np.float32)

    return compute
