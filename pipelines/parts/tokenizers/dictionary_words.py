"""Words of a dictionary as tokens, for text without spaces between words: what characters are compared with (Li et al.
2019)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field

from pipelines.errors import DataError
from pipelines.parts.tokenizers import MOST_WORDS, Tokenizer
from pipelines.parts.tokenizers.bert_frame import SPECIAL, with_special_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Fast
    from tokenizers.models import Unigram
    from transformers import PreTrainedTokenizerFast


class DictionaryWords(Tokenizer, name="dictionary_words"):
    """The words that jieba cuts the corpus into, the most frequent ones; of the others, `[UNK]`.

    A text is cut into the words whose product of frequencies is highest, by a unigram model without training: so a
    saved tokenizer needs no dictionary. A word outside of the vocabulary is cut into shorter words where these are in
    it. Special tokens are as in BERT: `[CLS] A [SEP]`. Text is normalised to NFKC, and spaces end words; what is
    decoded has a space between any two.
    """

    paper = "arXiv:1905.05526"
    offers: ClassVar[frozenset[str]] = frozenset({"mask"})
    expected_unknown_share: ClassVar[float] = 0.25

    vocab_size: int = Field(32_768, ge=64, le=MOST_WORDS)
    """Maximum number of tokens, including special tokens."""
    min_count: int = Field(2, ge=1)
    """Minimum frequency of a word with a token."""
    unknown_words: bool = True
    """Whether words outside of jieba's dictionary are found by its hidden Markov model; otherwise each of their
    characters is a word."""
    lowercase: bool = False
    """Whether to lowercase."""
    sample_bytes: int = Field(20_000_000, gt=0)
    """UTF-8 bytes of text to learn the vocabulary from."""

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        import rjieba
        from tokenizers import models

        normalizer = self._untrained(models.Unigram([("[UNK]", 0.0)], unk_id=0)).normalizer
        counts: Counter[str] = Counter()
        for text in texts:
            for part in normalizer.normalize_str(text).split():
                counts.update(rjieba.cut(part, self.unknown_words))
        ranked = sorted(
            (-count, word) for word, count in counts.items() if count >= self.min_count and word not in SPECIAL
        )
        kept = [(word, -count) for count, word in ranked[: self.vocab_size - len(SPECIAL)]]
        if not kept:
            raise DataError(
                f"tokenizer {self.name}: no words of the text occur {self.min_count} times or more; give more text, or "
                "lower min_count"
            )
        total = math.log(counts.total())
        pieces = [*((token, 0.0) for token in SPECIAL), *((word, math.log(count) - total) for word, count in kept)]
        return with_special_tokens(self._untrained(models.Unigram(pieces, unk_id=SPECIAL.index("[UNK]"))))

    def _untrained(self, model: Unigram) -> Fast:
        from tokenizers import Tokenizer as Fast
        from tokenizers import normalizers, pre_tokenizers

        fast = Fast(model)
        fast.normalizer = normalizers.Sequence(
            [normalizers.NFKC(), *([normalizers.Lowercase()] if self.lowercase else [])]
        )
        fast.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        return fast

    def tiny(self) -> Self:
        smaller = {"vocab_size": min(self.vocab_size, 1024), "sample_bytes": min(self.sample_bytes, 300_000)}
        return self.model_copy(update=smaller)
