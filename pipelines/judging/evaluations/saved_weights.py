"""What is in the weights of a saved model: its tensors, counted without loading them into a network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.models.untrusted import safetensors_header
from pipelines.networks.folder import ONNX, SAFETENSORS


def served_weights(folder: Path) -> Path:
    """The file of `folder` whose weights are served."""
    return folder / (ONNX if (folder / ONNX).is_file() else SAFETENSORS)


def parameters(weights: Path) -> int:
    """Number of trained parameters; of ONNX weights, the size of the initialisers without quantization scales and zero
    points."""
    if weights.name == SAFETENSORS:
        header = safetensors_header(weights)
        return sum(math.prod(map(int, entry["shape"])) for name, entry in header.items() if name != "__metadata__")
    return sum(
        math.prod(map(int, tensor.dims))
        for tensor in _initializers(weights)
        if len(tensor.dims) and not tensor.name.endswith(("_scale", "_zero_point"))
    )


def is_quantized(weights: Path) -> bool:
    """Whether ONNX weights are 8-bit integers."""
    return weights.name == ONNX and any(tensor.data_type in (2, 3) for tensor in _initializers(weights))


def _initializers(weights: Path) -> Sequence[Any]:
    import onnx

    graph: Sequence[Any] = onnx.load(weights, load_external_data=False).graph.initializer
    return graph
