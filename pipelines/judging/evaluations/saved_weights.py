"""What is in the weights of a saved model: its tensors, counted from the file where they are not packed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.models.opening import count_weights, open_lines
from pipelines.models.untrusted import safetensors_header
from pipelines.networks.folder import ONNX, SAFETENSORS


def served_weights(folder: Path) -> Path:
    """The file of `folder` whose weights are served."""
    return folder / (ONNX if (folder / ONNX).is_file() else SAFETENSORS)


def parameters(weights: Path) -> int:
    """Number of trained parameters, however few bits each has; of ONNX weights, the size of the initialisers without
    quantization scales and zero points."""
    if is_packed(weights):
        return count_weights(open_lines(weights.parent, "cpu").network)
    if weights.name == SAFETENSORS:
        header = safetensors_header(weights)
        return sum(math.prod(map(int, entry["shape"])) for name, entry in header.items() if name != "__metadata__")
    return sum(
        math.prod(map(int, tensor.dims))
        for tensor in _initializers(weights)
        if len(tensor.dims) and not tensor.name.endswith(("_scale", "_zero_point"))
    )


def is_packed(weights: Path) -> bool:
    """Whether some of the weights are stored several to a byte, as codes."""
    if weights.name != SAFETENSORS:
        return False
    header = safetensors_header(weights)
    return any(entry["dtype"] == "U8" for name, entry in header.items() if name != "__metadata__")


def is_quantized(weights: Path) -> bool:
    """Whether ONNX weights are 8-bit integers."""
    return weights.name == ONNX and any(tensor.data_type in (2, 3) for tensor in _initializers(weights))


def _initializers(weights: Path) -> Sequence[Any]:
    import onnx

    graph: Sequence[Any] = onnx.load(weights, load_external_data=False).graph.initializer
    return graph
