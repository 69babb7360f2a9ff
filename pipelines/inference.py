"""Texts in, class probabilities out, from any served folder.

    load_predictor(folder, threads=1).predict(["a text", "another"])        # float32 [2, C]

A folder with `model.onnx` is answered by ONNX Runtime without importing torch; one with `model.safetensors` by torch.
Nothing here unpickles: a folder that holds only pickled weights is refused.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import DataError, RecipeError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ONNX = "model.onnx"
SAFETENSORS = "model.safetensors"
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

    Raises DataError when the folder lacks its configuration, its tokenizer, or weights that can be read safely.
    """
    texts = TextEncoder(folder)
    labels = _labels(folder)
    if (folder / ONNX).is_file():
        return OnnxPredictor(folder, texts, labels, threads)
    if (folder / SAFETENSORS).is_file():
        return TorchPredictor(folder, texts, labels, threads)
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


class _Batched(ABC):
    """Batches texts, asks for logits, restores the order."""

    def __init__(self, encoder: TextEncoder, labels: list[str]) -> None:
        self.encoder = encoder
        self.labels = labels

    def predict(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        probabilities = np.zeros((len(texts), len(self.labels)), dtype=np.float32)
        for rows, tokens, mask in self.encoder.batches(texts, batch_size):
            probabilities[rows] = _softmax(self._logits(tokens, mask))
        return probabilities

    @abstractmethod
    def _logits(self, tokens: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Class scores [B, C] of one batch of input ids and attention mask [B, L]."""


class OnnxPredictor(_Batched):
    """`model.onnx` under ONNX Runtime on the CPU."""

    def __init__(self, folder: Path, encoder: TextEncoder, labels: list[str], threads: int) -> None:
        super().__init__(encoder, labels)
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # threads that spin while they wait take whole cores from their neighbours
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                str(folder / ONNX), sess_options=options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime raises a dozen unrelated classes for a damaged file
            raise DataError(f"{folder / ONNX}: ONNX Runtime cannot read it ({error})") from error
        self._inputs = [entry.name for entry in self._session.get_inputs()]

    def _logits(self, tokens: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        fed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        logits = self._session.run(["logits"], {name: fed[name] for name in self._inputs})[0]
        return np.asarray(logits, dtype=np.float32)


class TorchPredictor(_Batched):
    """`model.safetensors` under torch, in evaluation mode."""

    def __init__(self, folder: Path, encoder: TextEncoder, labels: list[str], threads: int) -> None:
        super().__init__(encoder, labels)
        self._network = load_classifier(folder)
        self._threads = threads

    def _logits(self, tokens: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        import torch

        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
        with torch.inference_mode():
            said = self._network(input_ids=torch.from_numpy(tokens), attention_mask=torch.from_numpy(mask))
        return np.asarray(said.logits.float().numpy(), dtype=np.float32)


def load_classifier(folder: Path) -> PreTrainedModel:
    """The classifier of `folder` in torch: safetensors only, float32, evaluation mode, plain attention.

    Raises DataError when the weights do not fit the configuration.
    """
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForSequenceClassification
    from transformers.utils import logging

    from pipelines.opening import RECORD, open_model

    logging.disable_progress_bar()
    if RECORD in read_json(folder / "config.json"):
        try:
            return open_model(folder, "cpu").network
        except RecipeError as error:
            raise DataError(str(error)) from None
    try:
        network, loading = AutoModelForSequenceClassification.from_pretrained(
            folder,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            attn_implementation="eager",
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise DataError(f"{folder}: cannot be opened as a classifier ({error})") from error
    for problem in ("missing_keys", "mismatched_keys", "unexpected_keys"):
        if loading[problem]:
            first = min(str(key) for key in loading[problem])
            raise DataError(f"{folder}: its weights do not fit its configuration, {problem.replace('_', ' ')}: {first}")
    result: PreTrainedModel = network.eval()
    return result


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


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: NDArray[np.float32] = shifted / shifted.sum(axis=1, keepdims=True)
    return result
