"""Texts in, class probabilities out, from any served folder.

    load_predictor(folder, threads=1).predict(["a text", "another"])        # float32 [2, C]

A folder that `cursus export` wrote is answered by the runtime that was chosen there; one with `model.onnx` by ONNX Runtime
without importing torch; one with `model.safetensors` by torch. Nothing here unpickles: a folder that holds only pickled weights
is refused.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import DataError, RecipeError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from pipelines.serving.runtimes import Compute

ONNX = "model.onnx"
SAFETENSORS = "model.safetensors"
CONFIGURATION = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
"""What a folder that is served holds beside its weights; the last only where a tokenizer has one."""
LONGEST = 512
"""Tokens kept of a text when a folder states no length of its own."""


class Predictor(Protocol):
    """A finished classifier."""

    labels: list[str]
    """The classes, in the order of the probabilities' columns."""

    def predict(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Probabilities [N, C] of `texts`, in their order; each row sums to one."""


def load_predictor(folder: Path, threads: int = 1) -> Predictor:
    """The classifier in `folder`, computing on `threads` CPU threads.

    Raises DataError when the folder lacks its configuration, its tokenizer, or weights that can be read safely, and when it
    was exported for a runtime that is not installed here.
    """
    from pipelines.models.text_network import Output, output_of

    encoder, labels = TextEncoder(folder), _labels(folder)
    if output_of(folder) is Output.VECTOR:
        raise DataError(f"{folder}: an encoder that answers with a vector; open it with load_vectors")
    return Classifier(encoder, labels, open_compute(folder, threads))


def load_vectors(folder: Path, threads: int = 1) -> Vectors:
    """The encoder in `folder`, computing on `threads` CPU threads. Raises DataError as `load_predictor` does."""
    from pipelines.models.text_network import Output, output_of

    if output_of(folder) is not Output.VECTOR:
        raise DataError(f"{folder}: answers a task rather than with a vector; open it with load_predictor")
    return Vectors(TextEncoder(folder), open_compute(folder, threads))


def open_compute(folder: Path, threads: int) -> Compute:
    """The network of `folder` at work in the runtime that its form asks for."""
    from pipelines.serving.exported import EXPORT, open_export
    from pipelines.serving.runtimes import every_runtime

    if (folder / EXPORT).is_file():
        return open_export(folder, threads)
    forms = {runtime.opens: runtime for runtime in every_runtime().values() if runtime.opens}
    # where both lie, the graph was converted from the weights
    for file in (ONNX, SAFETENSORS):
        if (folder / file).is_file():
            return forms[file].open(folder, threads)
    if pickled := sorted(path.name for path in folder.glob("*.bin")) + sorted(
        path.name for path in folder.glob("*.pt")
    ):
        raise DataError(
            f"{folder}: holds {pickled[0]}, a pickle, which can run code when read; save the model as {SAFETENSORS}"
        )
    raise DataError(f"{folder}: holds neither {ONNX} nor {SAFETENSORS}, so there is nothing to predict with")


class TextEncoder:
    """The tokenizer of a folder: texts to padded batches of token ids, cut to the length the folder states."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        path = folder / "tokenizer.json"
        try:
            self._tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"{folder}: tokenizer.json is missing; name a folder that a stage has written") from None
        except Exception as error:  # the tokenizers library raises bare Exception
            raise DataError(f"{path}: not a tokenizer ({error})") from error
        settings = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").is_file() else {}
        config = read_json(folder / "config.json")
        self.length = _length(settings, config)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(self.length)
        self.pad_id = _pad_id(settings, config, self._tokenizer)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, special tokens included, at most `length` of them."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens left out."""
        return str(self._tokenizer.decode(list(ids)))

    @property
    def vocabulary_size(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def batches(
        self, texts: Sequence[str], batch_size: int
    ) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """(rows [B], input_ids [B, L], attention_mask [B, L]) of each batch; texts of like length share one."""
        ids = self.encode(texts)
        order = sorted(range(len(ids)), key=lambda row: (-len(ids[row]), row))
        batches = []
        for first in range(0, len(order), batch_size):
            rows = order[first : first + batch_size]
            width = max(1, len(ids[rows[0]]))
            tokens = np.full((len(rows), width), self.pad_id, dtype=np.int64)
            mask = np.zeros((len(rows), width), dtype=np.int64)
            for line, row in enumerate(rows):
                tokens[line, : len(ids[row])] = ids[row]
                mask[line, : len(ids[row])] = 1
            batches.append((np.asarray(rows, dtype=np.int64), tokens, mask))
        return batches


class Classifier:
    """Batches texts, asks for scores, restores the order."""

    def __init__(self, encoder: TextEncoder, labels: list[str], compute: Compute) -> None:
        self.encoder, self.labels, self._compute = encoder, labels, compute

    def predict(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        probabilities = np.zeros((len(texts), len(self.labels)), dtype=np.float32)
        for rows, tokens, mask in self.encoder.batches(texts, batch_size):
            probabilities[rows] = softmax(self._compute(tokens, mask))
        return probabilities


class Vectors:
    """A finished encoder: the mean of the last hidden states over a text's tokens."""

    def __init__(self, encoder: TextEncoder, compute: Compute) -> None:
        self.encoder, self._compute = encoder, compute

    def encode(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Vectors [N, H] of `texts`, in their order; [0, 0] of none."""
        found: list[NDArray[np.float32] | None] = [None] * len(texts)
        for rows, tokens, mask in self.encoder.batches(texts, batch_size):
            for row, vector in zip(rows, self._compute(tokens, mask), strict=True):
                found[row] = vector
        return np.stack([vector for vector in found if vector is not None]) if found else np.zeros((0, 0), np.float32)


def load_classifier(folder: Path) -> PreTrainedModel:
    """The classifier of `folder` in torch: safetensors only, float32, evaluation mode, plain attention.

    Raises DataError when the weights do not fit the configuration.
    """
    from transformers import AutoModelForSequenceClassification

    from pipelines.models.opening import RECORD, open_model

    if RECORD in read_json(folder / "config.json"):
        try:
            return open_model(folder, "cpu").network
        except RecipeError as error:
            raise DataError(str(error)) from None
    network, loading = load_foreign(AutoModelForSequenceClassification, folder, "a classifier")
    refuse_unfit(
        folder, {problem: loading[problem] for problem in ("missing_keys", "mismatched_keys", "unexpected_keys")}
    )
    return network


def load_foreign(architecture: Any, folder: Path, what: str) -> tuple[PreTrainedModel, dict[str, Any]]:
    """A network of transformers' Auto class `architecture`: safetensors only, float32, evaluation mode, plain attention; and
    which of its keys did not fit.

    Raises DataError where `folder` cannot be opened as `what` it should be.
    """
    import torch
    from safetensors import SafetensorError
    from transformers.utils import logging

    logging.disable_progress_bar()
    level = logging.get_verbosity()
    logging.set_verbosity_error()  # what does not fit is told by whoever asked
    try:
        network, loading = architecture.from_pretrained(
            folder,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            attn_implementation="eager",
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise DataError(f"{folder}: cannot be opened as {what} ({error})") from error
    finally:
        logging.set_verbosity(level)
    return network.eval(), loading


def refuse_unfit(folder: Path, problems: Mapping[str, Collection[object]]) -> None:
    """Raise DataError for the first of the `problems` that transformers met when it loaded `folder`."""
    for problem, keys in problems.items():
        if keys:
            first = min(str(key) for key in keys)
            raise DataError(f"{folder}: its weights do not fit its configuration, {problem.replace('_', ' ')}: {first}")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`. Raises DataError naming the file when it is missing or not an object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: missing; name a folder that a stage has written") from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds {type(value).__name__}, expected an object")
    return value


def weighs_classes(folder: Path) -> bool:
    """Whether the model in `folder` gives each class a probability; one that writes its answers names no classes."""
    return bool(read_json(folder / "config.json").get("id2label"))


def _labels(folder: Path) -> list[str]:
    named = read_json(folder / "config.json").get("id2label")
    if not named:
        raise DataError(f"{folder / 'config.json'}: names no classes (id2label), so this is not a classifier")
    return [str(named[key]) for key in sorted(named, key=int)]


def _length(settings: dict[str, Any], config: dict[str, Any]) -> int:
    stated = [settings.get("model_max_length"), config.get("max_position_embeddings")]
    # a tokenizer that knows no length says 1e30
    known = [int(value) for value in stated if isinstance(value, (int, float)) and 0 < value < 1_000_000]
    return min(known) if known else LONGEST


def _pad_id(settings: dict[str, Any], config: dict[str, Any], tokenizer: Any) -> int:
    token = settings.get("pad_token")
    if isinstance(token, dict):
        token = token.get("content")
    found = tokenizer.token_to_id(token) if isinstance(token, str) else None
    if found is None:
        found = config.get("pad_token_id")
    return int(found) if found is not None else 0


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities [N, C] of scores [N, C]."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: NDArray[np.float32] = shifted / shifted.sum(axis=1, keepdims=True)
    return result
