"""Arrays into an ONNX graph and out of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.networks.onnx_graph import open_onnx
from pipelines.serving.runtimes import Compute
from pipelines.serving.runtimes.model_inputs import select_inputs


def onnx_compute(path: Path, threads: int) -> Compute:
    """The graph in `path` under ONNX Runtime. Raises DataError when it cannot be read."""
    opened = open_onnx(path, threads)
    asked = [entry.name for entry in opened.get_inputs()]

    def compute(
        ids: NDArray[np.int64], mask: NDArray[np.int64], types: NDArray[np.int64] | None = None, /
    ) -> NDArray[np.float32]:
        said = opened.run(None, select_inputs(asked, (ids, mask, types)))[0]
        return np.asarray(said, dtype=np.float32)

    return compute
