"""ONNX Runtime in float32."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.serving.runtimes import Compute, ServingRuntime

if TYPE_CHECKING:
    from pipelines.serving.runtimes.source_model import SourceModel


FILE = "model.onnx"


class OnnxRuntimeFp32(ServingRuntime, name="onnxruntime_fp32"):
    """ONNX Runtime on the float32 graph. Serves without torch, on any processor."""

    packages: ClassVar[tuple[str, ...]] = ("onnxruntime",)

    def convert(self, original: SourceModel, out: Path) -> None:
        shutil.copyfile(original.graph, out / FILE)

    def open(self, folder: Path, threads: int) -> Compute:
        from pipelines.serving.runtimes.onnx_call import onnx_compute

        return onnx_compute(folder / FILE, threads)
