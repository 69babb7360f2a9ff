"""WordPiece with a second, small vocabulary inside the first: that of a student (Zhao et al. 2019, §3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, model_validator

from pipelines.parts.tokenizers.bert_frame import with_special_tokens
from pipelines.parts.tokenizers.wordpiece import WordPiece

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class DualWordPiece(WordPiece, name="dual_wordpiece"):
    """BERT's tokenizer, whose first tokens are the vocabulary that `wordpiece` learns of the same text at
    `student_size` tokens, with the same ids; the rest are those that only a vocabulary of `vocab_size` has.

    Text is cut into the longest tokens of both. The number of the student's tokens is recorded, int
    `init_kwargs["student_tokens"]`: the corruption `mixed_subwords` cuts words into them alone.
    """

    paper = "arXiv:1909.11687"
    offers: ClassVar[frozenset[str]] = frozenset({"mask", "student_tokens"})

    student_size: int = Field(4928, ge=64)
    """Number of tokens of the student's vocabulary, including special tokens (§4.1: 4,928 of 30,522)."""

    @model_validator(mode="after")
    def _smaller(self) -> Self:
        if self.student_size >= self.vocab_size:
            raise ValueError(
                f"student_size ({self.student_size}) counts among the {self.vocab_size} tokens of vocab_size: give "
                "the student fewer"
            )
        return self

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import models

        texts = list(texts)
        small, large = (self._vocabulary(texts, size) for size in (self.student_size, self.vocab_size))
        known = set(small)
        tokens = [*small, *(token for token in large if token not in known)][: self.vocab_size]
        vocabulary = {token: index for index, token in enumerate(tokens)}
        tokenizer = with_special_tokens(
            self._untrained(models.WordPiece(vocab=vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
        )
        tokenizer.init_kwargs["student_tokens"] = len(small)
        return tokenizer

    def _vocabulary(self, texts: list[str], size: int) -> list[str]:
        """The tokens of `wordpiece` at `size`, in the order of their ids."""
        plain = WordPiece(vocab_size=size, lowercase=self.lowercase, sample_bytes=self.sample_bytes)
        vocabulary = plain.train(texts).get_vocab()
        return sorted(vocabulary, key=vocabulary.__getitem__)

    def tiny(self) -> Self:
        return super().tiny().model_copy(update={"student_size": min(self.student_size, 512)})
