"""Base class of conversions of a classifier to an ONNX graph of 8-bit integers, which replaces its weights."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from pipelines.errors import StageError
from pipelines.networks.folder import CONFIGURATION, ONNX
from pipelines.networks.onnx_graph import OPSET, export_onnx, open_onnx
from pipelines.networks.text_encoder import LONGEST, TextEncoder
from pipelines.parts.compressions import Calibration, Compression, Level

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from pipelines.networks.stored_size import StoredSize

RECORD = "quantization.json"
# in place of the user's texts, which a conversion never sees: both languages of the shipped corpora, short to long
TEXTS = (
    "Return the sum of the array elements over the given axis.",
    "Compute the eigenvalues of a complex Hermitian or real symmetric matrix.",
    "The court held that the contract was void, since neither party had signed it.",
    "We study how the learning rate of a language model should change when its batch grows, and find that it does.",
    "A very slow film. I kept waiting for something to happen; nothing did, and then it was over.",
    "这本书的内容很好，读起来非常轻松，推荐给大家。",
    "物流太慢了，包装也破了，里面的书页有折痕，希望商家能够改进。",
    "语言模型先在通用语料上训练，再在领域语料上继续训练，最后用少量标注数据微调。",
)
RANDOM_TEXTS = 24
"""Number of texts of random tokens that are compared in addition."""
BATCH = 32
"""Batch size of the comparison."""


class Int8Graph(Compression):
    """Export the classifier to ONNX and quantize the graph.

    Writes `model.onnx` (operator set 20; inputs input_ids and attention_mask int64 [B, L], output logits float32
    [B, C]), the configuration, the tokenizer, and `quantization.json` with the agreement measured against the source.
    Raises StageError if the mean cosine similarity between both is below `least_cosine`.
    """

    level = Level.BITS
    replaces_weights: ClassVar[bool] = True

    least_cosine: float = Field(0.99, gt=0, le=1)
    """Minimum mean cosine similarity between the probabilities before and after quantization."""

    def size_after(self, size: StoredSize) -> StoredSize:
        return size.times(1 / 4)

    def convert(
        self, source: Path, network: PreTrainedModel, out: Path, calibration: Calibration | None = None
    ) -> None:
        out.mkdir(parents=True, exist_ok=True)
        for name in CONFIGURATION:
            if (source / name).is_file():
                shutil.copyfile(source / name, out / name)
        with tempfile.TemporaryDirectory(dir=out, prefix=".export-") as scratch:
            exported, quantized = Path(scratch) / "float32.onnx", Path(scratch) / ONNX
            _export(network, exported)
            self.quantize(exported, quantized, calibration)
            os.replace(quantized, out / ONNX)
        agreement = _agreement(network, TextEncoder(source), out / ONNX)
        if agreement["cosine_mean"] < self.least_cosine:
            raise StageError(
                f"{self.name}: after quantization the probabilities have cosine {agreement['cosine_mean']:.4f} with "
                f"those of {source}, less than least_cosine {self.least_cosine}; serve this model in float32"
            )
        (out / RECORD).write_text(json.dumps({"opset": OPSET, **agreement}, indent=1) + "\n", encoding="utf-8")

    @abstractmethod
    def quantize(self, exported: Path, quantized: Path, calibration: Calibration | None) -> None:
        """Write the graph `exported`, float32, into the file `quantized` with 8-bit integers."""


def _export(network: PreTrainedModel, path: Path) -> None:
    """Write `network` to one ONNX file with dynamic batch size and length."""
    import torch

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.network(input_ids=input_ids, attention_mask=attention_mask).logits
            return logits

    longest = int(getattr(network.config, "max_position_embeddings", 0) or LONGEST)
    export_onnx(Logits(), path, longest, output="logits")


def _agreement(network: PreTrainedModel, encoder: TextEncoder, graph: Path) -> dict[str, Any]:
    """Agreement of the probabilities of `graph` with those of `network`, on sentences and on random tokens."""
    import numpy as np
    import torch
    from scipy.special import softmax

    session = open_onnx(graph, threads=1)
    rows: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    for _, tokens, mask in encoder.batches([*TEXTS, *_random_texts(encoder)], BATCH):
        with torch.inference_mode():
            before = network(input_ids=torch.from_numpy(tokens), attention_mask=torch.from_numpy(mask)).logits.numpy()
        (after,) = session.run(None, {"input_ids": tokens, "attention_mask": mask})
        rows += zip(softmax(before.astype(np.float64), axis=1), softmax(after.astype(np.float64), axis=1), strict=True)
    first, second = (np.stack(side) for side in zip(*rows, strict=True))
    cosines = (first * second).sum(axis=1) / (np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1))
    return {
        "texts": len(rows),
        "cosine_mean": round(float(cosines.mean()), 6),
        "cosine_least": round(float(cosines.min()), 6),
        "same_class": round(float((first.argmax(axis=1) == second.argmax(axis=1)).mean()), 6),
    }


def _random_texts(encoder: TextEncoder) -> Sequence[str]:
    generator = random.Random(0)
    lengths = [generator.randint(4, max(4, min(96, encoder.length))) for _ in range(RANDOM_TEXTS)]
    return [encoder.decode([generator.randrange(encoder.vocabulary_size) for _ in range(length)]) for length in lengths]
