"""Dynamic quantization for serving on a CPU: 8-bit weights, activations quantized at run time."""

from __future__ import annotations

from pathlib import Path

from pipelines.networks.onnx_graph import quantize_onnx
from pipelines.parts.compressions import Calibration
from pipelines.parts.compressions.int8_graph import Int8Graph


class DynamicInt8(Int8Graph, name="dynamic_int8"):
    """A graph of ONNX Runtime with matrices and embeddings as 8-bit integers, one scale per channel.

    Activations are quantized at run time, so no calibration is needed. Weights use seven of the eight bits: with all
    eight, processors without VNNI saturate silently and answer differently from the machine that converted.
    """

    paper = "arXiv:1910.06188"

    def quantize(self, exported: Path, quantized: Path, calibration: Calibration | None) -> None:
        quantize_onnx(exported, quantized)
