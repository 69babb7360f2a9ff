"""Whole words, and a token for a word that is masked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from pipelines.parts.tokenizers.words import Words

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

MASK = "[MASK]"


class MaskableWords(Words, name="maskable_words"):
    """The vocabulary of `words` and, as its last token, `[MASK]`, which a text can hold as BERT's texts can: so two
    networks read a masked word alike (Tang et al. 2019, §3.3)."""

    paper = "arXiv:1903.12136"
    offers: ClassVar[frozenset[str]] = Words.offers | {"mask"}

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        tokenizer = Words.train(self.model_copy(update={"vocab_size": self.vocab_size - 1}), texts)
        tokenizer.add_special_tokens({"mask_token": MASK})
        tokenizer.init_kwargs["counts"] = [*tokenizer.init_kwargs["counts"], 0]
        return tokenizer
