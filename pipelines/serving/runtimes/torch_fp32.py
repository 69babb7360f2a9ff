"""torch in float32, without compilation: the reference of all other runtimes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.errors import DataError
from pipelines.serving.runtimes import Compute, ServingRuntime

if TYPE_CHECKING:
    from pipelines.serving.runtimes.source_model import SourceModel


class TorchFp32(ServingRuntime, name="torch_fp32"):
    """Eager torch in float32, the network as it was trained."""

    is_reference: ClassVar[bool] = True
    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    opens: ClassVar[str] = "model.safetensors"

    def convert(self, original: SourceModel, out: Path) -> None:
        weights = sorted(original.folder.glob("*.safetensors*"))
        if not weights:
            raise DataError(f"{original.folder}: no {self.opens}; only safetensors are exported")
        for path in weights:
            shutil.copyfile(path, out / path.name)

    def open(self, folder: Path, threads: int) -> Compute:
        from pipelines.models.text_network import input_names, open_text_network
        from pipelines.serving.runtimes.torch_call import torch_compute

        return torch_compute(open_text_network(folder), input_names(folder), threads)
