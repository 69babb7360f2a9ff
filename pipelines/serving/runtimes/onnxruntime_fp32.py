"""ONNX Runtime in float32."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.serving.runtimes import Compute, Runtime

if TYPE_CHECKING:
    from pipelines.serving.runtimes.source_model import Original


class OnnxRuntimeFp32(Runtime, name="onnxruntime_fp32"):
    """ONNX Runtime on the float32 graph. Serves without torch, on any processor."""

    packages: ClassVar[tuple[str, ...]] = ("onnxruntime",)
    opens: ClassVar[str] = "model.onnx"

    def convert(self, original: Original, out: Path) -> None:
        shutil.copyfile(original.graph, out / self.opens)

    def open(self, folder: Path, threads: int) -> Compute:
        from pipelines.serving.runtimes.onnx_call import session

        return session(folder / self.opens, threads)
