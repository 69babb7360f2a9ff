"""ONNX files: export with dynamic batch size and length, quantization to 8 bits, inference sessions of ONNX Runtime."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch.nn import Module

OPSET = 20
"""ONNX operator set: the first in which GELU is a single operator, which ONNX Runtime computes in one pass."""
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""Names of the inputs of a graph, int64 [B, L]; the last one only if the network uses token types."""


def export_onnx(
    module: Module, path: Path, longest: int, *, inputs: Sequence[str] = INPUTS[:2], output: str, orders: int = 1
) -> None:
    """Export `module`, whose arguments are `inputs`, to one ONNX file for any batch of rows of up to `longest` tokens.

    The number of rows must be a multiple of `orders`. Metadata about this machine are removed.
    """
    import onnx
    import torch

    # the exporter specialises dimensions of size 0 or 1 in its example
    input_ids = torch.ones((2 * orders, 7), dtype=torch.long)
    batch: Any = torch.export.Dim("batch")
    axes = {0: orders * batch if orders > 1 else batch, 1: torch.export.Dim("length", max=longest)}
    shapes: dict[str, dict[int, Any]] = {name: dict.fromkeys(axes, torch.export.Dim.AUTO) for name in inputs}
    # the exporter warns if the axes of more than one input are named
    shapes[inputs[0]] = axes
    with _quiet_exporter(), torch.inference_mode():
        program = torch.onnx.export(
            module.eval(),
            (input_ids, *(torch.ones_like(input_ids) for _ in inputs[1:])),
            input_names=list(inputs),
            output_names=[output],
            dynamic_shapes=shapes,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    # remove stack traces of this machine, and shapes that quantization makes stale
    for node in model.graph.node:
        node.ClearField("metadata_props")
    for tensor in (*model.graph.initializer, *model.graph.input, *model.graph.output):
        tensor.ClearField("metadata_props")
    model.ClearField("metadata_props")
    model.graph.ClearField("metadata_props")
    model.graph.ClearField("value_info")
    onnx.save(model, path)


def quantize_onnx(exported: Path, quantized: Path) -> None:
    """Quantize `exported` dynamically: matrices and embeddings to 8-bit integers, one scale per channel; activations at
    run time.

    Weights use seven of the eight bits: with all eight, processors without VNNI saturate silently.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = quantized.with_name("prepared.onnx")
    quant_pre_process(str(exported), str(prepared), skip_symbolic_shape=True, skip_onnx_shape=True)
    quantize_dynamic(
        str(prepared),
        str(quantized),
        op_types_to_quantize=["MatMul", "Gemm", "Gather"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
    )
    prepared.unlink()


def quantize_onnx_static(
    exported: Path, quantized: Path, batches: Iterator[Mapping[str, NDArray[np.int64]]], *, percentile: bool
) -> None:
    """Quantize `exported` statically, as `QuantizeLinear` and `DequantizeLinear` around matrix products: weights and
    embeddings as `quantize_onnx` does, the inputs of products by their ranges over `batches`, each the graph's inputs.

    A range is that of the smallest and largest value, or with `percentile` that of 99.999 % of the values.
    """
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader:
        def get_next(self) -> Mapping[str, NDArray[np.int64]] | None:
            return next(batches, None)

    prepared = quantized.with_name("prepared.onnx")
    quant_pre_process(str(exported), str(prepared), skip_symbolic_shape=True, skip_onnx_shape=True)
    quantize_static(
        str(prepared),
        str(quantized),
        Reader(),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=["MatMul", "Gemm", "Gather"],
        per_channel=True,
        reduce_range=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.Percentile if percentile else CalibrationMethod.MinMax,
    )
    prepared.unlink()


def open_onnx(path: Path, threads: int) -> Any:
    """An InferenceSession for `path` on the CPU. Raises DataError for a file that ONNX Runtime cannot read."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # spinning threads would take whole cores from other processes
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), sess_options=options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime raises a dozen unrelated classes for a damaged file
        raise DataError(f"{path}: ONNX Runtime cannot read it ({error})") from error


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Suppress messages of torch's exporter that do not concern the user: missing torchvision, a deprecation inside
    torch."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated", category=FutureWarning)
            yield
    finally:
        logger.setLevel(level)
