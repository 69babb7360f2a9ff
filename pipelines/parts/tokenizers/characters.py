"""Characters: every one a token, the unit of Chinese that needs no segmentation (Li et al. 2019)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field

from pipelines.parts.tokenizers import Tokenizer
from pipelines.parts.tokenizers.bert_frame import SPECIAL, framed

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Fast
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

SPACE = "▁"


class Characters(Tokenizer, name="characters"):
    """One token a character, the most frequent ones; all others are `[UNK]`. A text is `[CLS] A [SEP]`, as BERT's.

    Text is in Unicode's form NFKC, and runs of spaces are one. In Chinese a segmentation beside it says which characters
    are one word.
    """

    paper = "arXiv:1905.05526"

    vocab_size: int = Field(8192, ge=64)
    """Largest number of tokens, special ones included."""
    lowercase: bool = False
    """Whether case is dropped."""
    spaces: bool = True
    """Whether the space before a word is a token, `▁`; false leaves spaces out, as suits Chinese."""
    sample_bytes: int = Field(20_000_000, gt=0)
    """UTF-8 bytes of text that the vocabulary is learnt from."""

    offers: ClassVar[frozenset[str]] = frozenset({"mask"})

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import models

        reader = self._untrained(models.WordLevel(unk_token="[UNK]"))
        seen: Counter[str] = Counter()
        for text in texts:
            normal = reader.normalizer.normalize_str(text)
            words = normal.split()
            seen.update("".join(words))
            seen[SPACE] += len(words) * self.spaces
        ranked = sorted((-count, character) for character, count in seen.items() if count)
        tokens = [*SPECIAL, *(character for _, character in ranked)][: self.vocab_size]
        fast = self._untrained(models.WordLevel({token: index for index, token in enumerate(tokens)}, unk_token="[UNK]"))
        return framed(fast)

    def _untrained(self, model: WordLevel) -> Fast:
        from tokenizers import Regex, decoders, normalizers, pre_tokenizers
        from tokenizers import Tokenizer as Fast

        fast = Fast(model)
        fast.normalizer = normalizers.Sequence(
            [normalizers.NFKC(), *([normalizers.Lowercase()] if self.lowercase else [])]
        )
        spaced = [pre_tokenizers.Metaspace(prepend_scheme="always")] if self.spaces else []
        alone = pre_tokenizers.Split(Regex("."), behavior="isolated")
        fast.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), *spaced, alone])
        fast.decoder = decoders.Metaspace(prepend_scheme="always") if self.spaces else decoders.Fuse()
        return fast

    def tiny(self) -> Self:
        smaller = {"vocab_size": min(self.vocab_size, 1024), "sample_bytes": min(self.sample_bytes, 300_000)}
        return self.model_copy(update=smaller)
