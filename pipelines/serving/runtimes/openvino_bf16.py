"""OpenVINO in bfloat16."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.serving.runtimes import Compute, ServingRuntime

if TYPE_CHECKING:
    from pipelines.serving.runtimes.source_model import SourceModel


class OpenVinoBf16(ServingRuntime, name="openvino_bf16"):
    """OpenVINO with matrix products in bfloat16, without calibration. Weights are stored in 16 bits."""

    packages: ClassVar[tuple[str, ...]] = ("openvino",)
    extra: ClassVar[str] = "openvino"
    instructions: ClassVar[tuple[str, ...]] = ("amx_bf16", "avx512_bf16", "bf16")

    def convert(self, original: SourceModel, out: Path) -> None:
        from pipelines.serving.runtimes.openvino_graph import read_onnx, write_graph

        write_graph(read_onnx(original.graph), out)

    def open(self, folder: Path, threads: int) -> Compute:
        from pipelines.serving.runtimes.openvino_graph import open_graph

        return open_graph(folder, threads, "bf16")
