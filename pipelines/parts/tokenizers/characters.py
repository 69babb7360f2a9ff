"""Character tokenizer, which needs no word segmentation in Chinese (Li et al. 2019)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field

from pipelines.parts.tokenizers import MOST_WORDS, Tokenizer
from pipelines.parts.tokenizers.bert_frame import SPECIAL, with_special_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Fast
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

SPACE = "▁"


class Characters(Tokenizer, name="characters"):
    """One token per character, for the most frequent ones; all others are `[UNK]`.

    Special tokens are as in BERT: `[CLS] A [SEP]`. Text is normalised to NFKC, and runs of spaces to one space. In
    Chinese, a segmentation can be combined with it to mark the characters of one word.
    """

    paper = "arXiv:1905.05526"

    vocab_size: int = Field(8192, ge=64, le=MOST_WORDS)
    """Maximum number of tokens, including special tokens."""
    lowercase: bool = False
    """Whether to lowercase."""
    spaces: bool = True
    """Whether the space before a word is a token, `▁`; false removes spaces, as suits Chinese."""
    sample_bytes: int = Field(20_000_000, gt=0)
    """UTF-8 bytes of text to learn the vocabulary from."""

    offers: ClassVar[frozenset[str]] = frozenset({"mask"})

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import models

        reader = self._untrained(models.WordLevel(unk_token="[UNK]"))
        counts: Counter[str] = Counter()
        for text in texts:
            normal = reader.normalizer.normalize_str(text)
            words = normal.split()
            counts.update("".join(words))
            counts[SPACE] += len(words) * self.spaces
        ranked = sorted((-count, character) for character, count in counts.items() if count)
        tokens = [*SPECIAL, *(character for _, character in ranked)][: self.vocab_size]
        fast = self._untrained(
            models.WordLevel({token: index for index, token in enumerate(tokens)}, unk_token="[UNK]")
        )
        return with_special_tokens(fast)

    def _untrained(self, model: WordLevel) -> Fast:
        from tokenizers import Regex, decoders, normalizers, pre_tokenizers
        from tokenizers import Tokenizer as Fast

        fast = Fast(model)
        fast.normalizer = normalizers.Sequence(
            [normalizers.NFKC(), *([normalizers.Lowercase()] if self.lowercase else [])]
        )
        spaced = [pre_tokenizers.Metaspace(prepend_scheme="always")] if self.spaces else []
        each_character = pre_tokenizers.Split(Regex("."), behavior="isolated")
        fast.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), *spaced, each_character])
        fast.decoder = decoders.Metaspace(prepend_scheme="always") if self.spaces else decoders.Fuse()
        return fast

    def tiny(self) -> Self:
        smaller = {"vocab_size": min(self.vocab_size, 1024), "sample_bytes": min(self.sample_bytes, 300_000)}
        return self.model_copy(update=smaller)
