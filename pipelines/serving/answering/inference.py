"""Class probabilities of texts, or their vectors, from any served folder.

    load_predictor(folder, threads=1).predict(["a text", "another"])        # float32 [2, C]

A folder written by `cursus export` is computed by the runtime chosen there; one with `model.onnx` by ONNX Runtime,
without importing torch; one with `model.safetensors` by torch. Nothing is unpickled: a folder with pickled weights only
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import DataError
from pipelines.models.oversized import refuse_oversized
from pipelines.models.text_network import OutputKind, needs_its_head, output_kind
from pipelines.models.untrusted import refuse_unsafe
from pipelines.networks.folder import ONNX, SAFETENSORS, read_json
from pipelines.networks.text_encoder import TextEncoder
from pipelines.serving.exported import EXPORT, open_export
from pipelines.serving.runtimes import runtime_of, runtimes_by_name

if TYPE_CHECKING:
    from pipelines.serving.runtimes import Compute


class Predictor(Protocol):
    """A finished classifier."""

    labels: list[str]
    """The classes, in the order of the probabilities' columns."""

    def predict(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Probabilities [N, C] of `texts`, in order; each row sums to one."""


def load_predictor(folder: Path, threads: int = 1) -> Predictor:
    """The classifier in `folder`, computed on `threads` CPU threads; by its head, where no runtime can serve it.

    Raises RecipeError for a folder that must not be opened, and DataError when it lacks its configuration, its
    tokenizer, or weights that can be read safely, and when it was exported for a runtime that is not installed here.
    """
    _refuse(folder)
    return open_predictor(folder, threads)


def open_predictor(
    folder: Path, threads: int = 1, open_encoder: Callable[[Path], TextEncoder] = TextEncoder
) -> Predictor:
    """The classifier in `folder`, which comes from the store or from this process, so that it is not checked first.

    `open_encoder` opens its tokenizer. Raises DataError as `load_predictor` does.
    """
    encoder, labels = open_encoder(folder), _labels(folder)
    if needs_its_head(folder):
        from pipelines.serving.answering.head_classifier import HeadClassifier

        return HeadClassifier(folder, threads)
    if output_kind(folder) is OutputKind.VECTOR:
        raise DataError(f"{folder}: an encoder that returns vectors; open it with load_vectors")
    if output_kind(folder) is OutputKind.LABELS:
        raise DataError(f"{folder}: its labels do not exclude each other; open it with Answerer")
    return ServedClassifier(encoder, labels, open_compute(folder, threads))


def load_vectors(folder: Path, threads: int = 1) -> VectorEncoder:
    """The vector encoder in `folder`, computed on `threads` CPU threads. Raises errors as `load_predictor` does."""
    _refuse(folder)
    if output_kind(folder) is not OutputKind.VECTOR:
        raise DataError(f"{folder}: a model that answers a task, not a vector encoder; open it with load_predictor")
    return VectorEncoder(TextEncoder(folder), open_compute(folder, threads))


def _refuse(folder: Path) -> None:
    if folder.is_dir():  # what is missing is reported where it is read
        refuse_unsafe(folder)
        refuse_oversized(folder)


def open_compute(folder: Path, threads: int) -> Compute:
    """The network of `folder` as a function, in the runtime of its file format."""
    if (folder / EXPORT).is_file():
        return open_export(folder, threads)
    pickled = sorted(path.name for path in folder.glob("*.bin")) + sorted(path.name for path in folder.glob("*.pt"))
    if pickled and not any((folder / file).is_file() for file in (ONNX, SAFETENSORS)):
        raise DataError(
            f"{folder}: holds {pickled[0]}, a pickle, which can run code when read; save the model as {SAFETENSORS}"
        )
    return runtimes_by_name()[runtime_of(folder)].open(folder, threads)


class ServedClassifier:
    """A classifier of texts: batches them by length and restores their order."""

    def __init__(self, encoder: TextEncoder, labels: list[str], compute: Compute) -> None:
        self.encoder, self.labels, self._compute = encoder, labels, compute

    def predict(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        probabilities = np.zeros((len(texts), len(self.labels)), dtype=np.float32)
        for rows, tokens, mask in self.encoder.batches(texts, batch_size):
            probabilities[rows] = softmax(self._compute(tokens, mask))
        return probabilities


class VectorEncoder:
    """A vector encoder: the mean of the last hidden states over a text's tokens."""

    def __init__(self, encoder: TextEncoder, compute: Compute) -> None:
        self.encoder, self._compute = encoder, compute

    def encode(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Vectors [N, H] of `texts`, in order; [0, 0] for no texts."""
        vectors: list[NDArray[np.float32] | None] = [None] * len(texts)
        for rows, tokens, mask in self.encoder.batches(texts, batch_size):
            for row, vector in zip(rows, self._compute(tokens, mask), strict=True):
                vectors[row] = vector
        return np.stack([one for one in vectors if one is not None]) if vectors else np.zeros((0, 0), np.float32)


def has_class_probabilities(folder: Path) -> bool:
    """Whether the model in `folder` gives each class a probability; models that generate answers have no class
    names."""
    return bool(read_json(folder / "config.json").get("id2label"))


def _labels(folder: Path) -> list[str]:
    named = read_json(folder / "config.json").get("id2label")
    if not named:
        raise DataError(f"{folder / 'config.json'}: has no class names (id2label), so this is not a classifier")
    return [str(named[key]) for key in sorted(named, key=int)]


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities [N, C] of logits [N, C]."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: NDArray[np.float32] = shifted / shifted.sum(axis=1, keepdims=True)
    return result
