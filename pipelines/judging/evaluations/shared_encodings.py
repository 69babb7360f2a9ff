"""Test texts are encoded once for all judged models with the same tokenizer: a report opens a dozen of them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

from pipelines.lineage.fingerprint import digest_file
from pipelines.networks.text_encoder import TextEncoder

MOST_TOKENS = 8_000_000
"""Tokens that are kept, of all tokenizers together: 32 MB."""


class SharedEncodings:
    """Token ids of the texts that were encoded so far, by tokenizer."""

    def __init__(self, most_tokens: int = MOST_TOKENS) -> None:
        self.tokens = 0  # kept so far
        self.most_tokens = most_tokens  # beyond them, texts are encoded whenever they are asked for
        self._known: dict[tuple[str, int], dict[str, array[int]]] = {}

    def open(self, folder: Path) -> TextEncoder:
        """The tokenizer of a model's folder. Raises DataError as TextEncoder does."""
        return _SharingEncoder(folder, self)

    def of(self, tokenizer: str, length: int) -> dict[str, array[int]]:
        """What is known of the texts cut to `length` tokens by the tokenizer with the digest `tokenizer`."""
        return self._known.setdefault((tokenizer, length), {})


class _SharingEncoder(TextEncoder):
    def __init__(self, folder: Path, shared: SharedEncodings) -> None:
        super().__init__(folder)
        self._shared = shared
        self._known = shared.of(digest_file(folder / "tokenizer.json"), self.length)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        encoded = dict(zip(new, super().encode(new), strict=True))
        for text, ids in encoded.items():
            if self._shared.tokens + len(ids) <= self._shared.most_tokens:
                self._shared.tokens += len(ids)
                self._known[text] = array("i", ids)
        return [encoded[text] if text in encoded else self._known[text].tolist() for text in texts]
