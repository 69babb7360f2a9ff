"""Tokenizers: from raw text to the vocabulary of a network. The library `tokenizers` implements them; members configure
it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

from pipelines.components import Component

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


MOST_WORDS = 10_000_000
"""Most tokens of a vocabulary: each takes a row of the embedding table."""


class Tokenizer(Component):
    """A tokenizer algorithm and its vocabulary size."""

    offers: ClassVar[frozenset[str]] = frozenset({"mask"})
    """Features that a corruption or a head may require: `mask` (a mask token), `sentinels` (tokens that replace removed
    spans), `counts` (frequency of each token in the training text), `new_words` (its vocabulary can be extended),
    `roles` (tokens that mark the speakers of a dialogue), `student_tokens` (its first tokens are the vocabulary of a
    student)."""
    expected_unknown_share: ClassVar[float] = 0.01
    """Share of unknown tokens in a text above which something is assumed to be wrong; recipes can override it."""

    @abstractmethod
    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        """A tokenizer trained on `texts`, a deterministic function of them; `save_pretrained` writes it as a Hugging
        Face folder.

        It has a padding token and a token that ends a document (`sep_token`, otherwise `eos_token`); its post-processor
        adds special tokens to a text or a pair of texts as in the publication of the network. Tokens that replace
        removed spans are its `extra_special_tokens` `<extra_id_0>`, `<extra_id_1>`, …
        """

    def tiny(self) -> Self:
        """The same tokenizer at the smallest useful size, for smoke runs."""
        return self
