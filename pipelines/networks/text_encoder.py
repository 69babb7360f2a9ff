"""The tokenizer of a saved model, loaded with the `tokenizers` library alone, without importing transformers or
torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import DataError
from pipelines.networks.folder import read_json

LONGEST = 512
"""Maximum number of tokens of a text if the folder does not state a length."""
BLOCK = 8192
"""Texts that are encoded together."""


class TextEncoder:
    """The tokenizer of a folder: from texts to padded batches of token ids, truncated to the length that the folder
    states."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        path = folder / "tokenizer.json"
        try:
            self._tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"{folder}: tokenizer.json is missing; give the folder of a finished stage") from None
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
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """(indices of the texts [B], input_ids [B, L], attention_mask [B, L]) of each batch; texts of similar length
        together, of BLOCK texts at a time."""
        for begin in range(0, len(texts), BLOCK):
            for rows, tokens, mask in self._batches(texts[begin : begin + BLOCK], batch_size):
                yield begin + rows, tokens, mask

    def _batches(
        self, texts: Sequence[str], batch_size: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        ids = self.encode(texts)
        order = sorted(range(len(ids)), key=lambda row: (-len(ids[row]), row))
        for first in range(0, len(order), batch_size):
            rows = order[first : first + batch_size]
            width = max(1, len(ids[rows[0]]))
            tokens = np.full((len(rows), width), self.pad_id, dtype=np.int64)
            mask = np.zeros((len(rows), width), dtype=np.int64)
            for line, row in enumerate(rows):
                tokens[line, : len(ids[row])] = ids[row]
                mask[line, : len(ids[row])] = 1
            yield np.asarray(rows, dtype=np.int64), tokens, mask


def _length(settings: dict[str, Any], config: dict[str, Any]) -> int:
    stated = [settings.get("model_max_length"), config.get("max_position_embeddings")]
    # transformers writes 1e30 for an unlimited tokenizer
    known = [int(value) for value in stated if isinstance(value, (int, float)) and 0 < value < 1_000_000]
    return min(known) if known else LONGEST


def _pad_id(settings: dict[str, Any], config: dict[str, Any], tokenizer: Any) -> int:
    token = settings.get("pad_token")
    if isinstance(token, dict):
        token = token.get("content")
    pad_id = tokenizer.token_to_id(token) if isinstance(token, str) else None
    if pad_id is None:
        pad_id = config.get("pad_token_id")
    return int(pad_id) if pad_id is not None else 0
