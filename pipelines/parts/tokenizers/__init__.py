"""Tokenizers: from raw text to the vocabulary of a network. `tokenizers` does the work; a member says which kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

from pipelines.components import Component

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Tokenizer(Component):
    """A kind of tokenizer and its size."""

    offers: ClassVar[frozenset[str]] = frozenset({"mask"})
    """What a corruption or a head may need of it: `mask` (a mask token), `sentinels` (tokens that stand for spans taken
    out), `counts` (how often each token stood in the text it was trained on), `new_words` (its vocabulary can be added to)."""
    usually_unknown: ClassVar[float] = 0.01
    """Share of a text's tokens that may be unknown to it before something is wrong; recipes can say otherwise."""

    @abstractmethod
    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        """A tokenizer trained on `texts`, deterministic in them, that `save_pretrained` writes as a Hugging Face folder.

        It has a padding token, and a token that ends a document (`sep_token`, else `eos_token`); its post-processor frames
        a text, or a pair of texts, as this kind of network was published to read them. Tokens that stand for spans taken
        out are its `extra_special_tokens` `<extra_id_0>`, `<extra_id_1>`, …
        """

    def tiny(self) -> Self:
        """The same kind of tokenizer at the smallest useful size, for smoke runs."""
        return self
