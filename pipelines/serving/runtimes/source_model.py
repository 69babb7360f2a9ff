"""The float32 model of an export, and what conversions share: it is traced only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.models.text_network import (
    OutputKind,
    input_names,
    max_row_length,
    open_text_network,
    output_kind,
    rows_per_example,
)
from pipelines.networks.onnx_graph import export_onnx
from pipelines.serving.runtimes.model_inputs import ModelInputs

if TYPE_CHECKING:
    from torch.nn import Module


@dataclass(frozen=True)
class SourceModel:
    """A float32 model folder to be converted."""

    folder: Path
    scratch: Path
    """An empty folder for files that conversions share."""
    calibration: Sequence[ModelInputs]
    """Real texts, for runtimes that calibrate the scales of activations."""

    @cached_property
    def network(self) -> Module:
        """The network, from `open_text_network`."""
        return open_text_network(self.folder)

    @property
    def inputs(self) -> tuple[str, ...]:
        return input_names(self.folder)

    @property
    def output(self) -> OutputKind:
        return output_kind(self.folder)

    @property
    def orders(self) -> int:
        return rows_per_example(self.folder)

    @cached_property
    def graph(self) -> Path:
        """The network as a float32 ONNX file."""
        path = self.scratch / "float32.onnx"
        name = "vector" if self.output is OutputKind.VECTOR else "logits"
        longest = max_row_length(self.folder)
        export_onnx(self.network, path, longest, inputs=self.inputs, output=name, orders=self.orders)
        return path
