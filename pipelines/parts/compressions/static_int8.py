"""Static quantization for serving on a CPU: 8-bit weights, activations with scales that are calibrated beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipelines.networks.onnx_graph import INPUTS, quantize_onnx_static
from pipelines.parts.compressions import Calibration
from pipelines.parts.compressions.int8_graph import Int8Graph
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class StaticInt8(Int8Graph, name="static_int8"):
    """A graph of ONNX Runtime with matrices, embeddings and the inputs of matrix products as 8-bit integers (Wu et al.
    2020, §3): one scale per channel of a weight, one scale and zero point for each activation.

    The ranges of activations are those of `budget.calibration` batches of the stage's own corpus; nothing is measured
    at run time, so that a text's answer does not depend on the other texts of its batch. Weights use seven of the eight
    bits: with all eight, processors without VNNI saturate silently.
    """

    paper = "arXiv:2004.09602"

    ranges: Literal["extremes", "percentile"] = "extremes"
    """The calibrated range of an activation: from its smallest to its largest value, or the one that holds 99.999 %
    of its values (§5)."""

    @property
    def needs_calibration(self) -> bool:
        return True

    def quantize(self, exported: Path, quantized: Path, calibration: Calibration | None) -> None:
        assert calibration is not None
        quantize_onnx_static(exported, quantized, _inputs(calibration), percentile=self.ranges == "percentile")


def _inputs(calibration: Calibration) -> Iterator[dict[str, NDArray[np.int64]]]:
    """The calibration batches as inputs of the graph, int64 [B, L] each."""
    import torch

    for batch in calibration.batches():
        ids = batch[Field.INPUT_IDS]
        mask = batch[Field.ATTENTION_MASK] if Field.ATTENTION_MASK in batch else torch.ones_like(ids)
        yield {name: value.cpu().numpy() for name, value in zip(INPUTS, (ids, mask), strict=False)}
