"""OpenVINO in 8 bits, calibrated by NNCF."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.lineage.hardware import BF16_FLAGS, extensions
from pipelines.serving.runtimes import Compute, ServingRuntime

if TYPE_CHECKING:
    from pipelines.serving.runtimes.source_model import SourceModel


class OpenVinoInt8(ServingRuntime, name="openvino_int8"):
    """OpenVINO, weights and activations in 8 bits: scales calibrated on real texts, outliers smoothed (Xiao et al.
    2023).

    Operations that stay in floating point are computed in bfloat16 if the processor supports it.
    """

    paper = "arXiv:2211.10438"
    packages: ClassVar[tuple[str, ...]] = ("openvino", "nncf")
    extra: ClassVar[str] = "openvino"
    instructions: ClassVar[tuple[str, ...]] = ("avx_vnni", "avx512_vnni", "amx_int8", "asimddp", "i8mm")

    def convert(self, original: SourceModel, out: Path) -> None:
        from pipelines.serving.runtimes.model_inputs import select_inputs
        from pipelines.serving.runtimes.openvino_graph import quiet_import, read_onnx, write_graph

        nncf = quiet_import("nncf")
        nncf.set_log_level("ERROR")
        # one text at a time, so that scales are not calibrated on padding
        texts = [select_inputs(original.inputs, rows) for rows in original.calibration]
        with redirect_stdout(StringIO()):  # progress bars
            quantized = nncf.quantize(
                read_onnx(original.graph),
                nncf.Dataset(texts),
                model_type=nncf.ModelType.TRANSFORMER,
                subset_size=len(texts),
            )
        write_graph(quantized, out)

    def open(self, folder: Path, threads: int) -> Compute:
        from pipelines.serving.runtimes.openvino_graph import open_graph

        return open_graph(folder, threads, "bf16" if extensions() & BF16_FLAGS else "f32")
