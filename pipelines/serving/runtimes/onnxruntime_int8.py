"""ONNX Runtime with 8-bit matrices and dynamic quantization of activations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.networks.onnx_graph import quantize_onnx
from pipelines.serving.runtimes import Compute, ServingRuntime

if TYPE_CHECKING:
    from pipelines.serving.runtimes.source_model import SourceModel

FILE = "model.onnx"


class OnnxRuntimeInt8(ServingRuntime, name="onnxruntime_int8"):
    """ONNX Runtime on 8-bit matrices and embeddings, one scale per channel; activations are quantized at run time.

    A quarter of the size. Serves without torch; an activation's scale is that of its batch, so a text's answer varies
    slightly with the other texts of the batch.
    """

    paper = "arXiv:1910.06188"
    packages: ClassVar[tuple[str, ...]] = ("onnxruntime",)
    opens: ClassVar[str] = FILE  # graphs in the folders of stages are of 8 bits
    instructions: ClassVar[tuple[str, ...]] = ("avx_vnni", "avx512_vnni", "amx_int8", "asimddp", "i8mm")

    def convert(self, original: SourceModel, out: Path) -> None:
        quantize_onnx(original.graph, out / FILE)

    def open(self, folder: Path, threads: int) -> Compute:
        from pipelines.serving.runtimes.onnx_call import onnx_compute

        return onnx_compute(folder / FILE, threads)
