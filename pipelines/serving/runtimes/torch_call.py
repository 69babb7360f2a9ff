"""Calls of torch modules with NumPy arrays, on a number of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.serving.runtimes import Compute
from pipelines.serving.runtimes.model_inputs import select_inputs


def torch_compute(module: Callable[..., Any], inputs: Sequence[str], threads: int) -> Compute:
    """`module`, whose arguments are `inputs`, on `threads` torch threads."""
    import torch

    def compute(
        ids: NDArray[np.int64], mask: NDArray[np.int64], types: NDArray[np.int64] | None = None, /
    ) -> NDArray[np.float32]:
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        given = [torch.from_numpy(value) for value in select_inputs(inputs, (ids, mask, types)).values()]
        # not inference_mode: code compiled and frozen under no_grad would be compiled again
        with torch.no_grad():
            outputs: torch.Tensor = module(*given)
        return np.asarray(outputs.float().numpy(), dtype=np.float32)

    return compute
