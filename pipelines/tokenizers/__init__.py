"""Tokenizers: from raw text to the vocabulary of a network. `tokenizers` does the work; a member says which kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from pipelines.components import Component

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Tokenizer(Component):
    """A kind of tokenizer and its size."""

    @abstractmethod
    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        """A tokenizer trained on `texts`, deterministic in them, that `save_pretrained` writes as a Hugging Face folder.

        It has `[PAD] [UNK] [CLS] [SEP] [MASK]`-like special tokens and wraps a single text as a classifier expects it.
        """

    def tiny(self) -> Self:
        """The same kind of tokenizer at the smallest useful size, for smoke runs."""
        return self
