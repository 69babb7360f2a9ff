"""Unigram tokenizer: a unigram language model of pieces, and the most likely segmentation of a text (Kudo 2018)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, model_validator

from pipelines.parts.tokenizers import MOST_WORDS, Tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Fast
    from transformers import PreTrainedTokenizerFast

WITHIN_WORD = r"▁?(?:\p{Han}+|(?:(?!\p{Han})[\p{L}\p{M}])+|\p{N}+|[^\p{L}\p{M}\p{N}▁]+)|▁"
"""Units that a piece must not cross: runs of Chinese characters, letters, digits or symbols, with the space before
them."""


class UnigramTokenizer(Tokenizer):
    """Base class of unigram tokenizers; members define special tokens and post-processing.

    Text is normalised to NFKC; a space becomes `▁`, runs of spaces are one.
    """

    vocab_size: int = Field(8192, ge=256, le=MOST_WORDS)
    """Number of tokens, including special tokens."""
    sample_bytes: int = Field(5_000_000, gt=0)
    """UTF-8 bytes of text to learn the vocabulary from."""

    def _train_unigram(self, texts: Iterable[str], special: Sequence[str], special_after: Sequence[str] = ()) -> Fast:
        """A tokenizer with pieces learnt from `texts`, without post-processor. Ids: `special`, the pieces, then
        `special_after`."""
        from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
        from tokenizers import Tokenizer as Fast

        from pipelines.parts.tokenizers.unigram_training import learn_pieces

        normalizer = normalizers.NFKC()
        spaced = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
        splitter = pre_tokenizers.Sequence([*spaced, pre_tokenizers.Split(Regex(WITHIN_WORD), behavior="isolated")])
        words: Counter[str] = Counter()
        for text in texts:
            words.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
        size = self.vocab_size - len(special) - len(special_after)
        pieces = learn_pieces(_split_at_rare(words, size // 2), size)
        vocabulary = [*((token, 0.0) for token in special), *pieces, *((token, 0.0) for token in special_after)]
        fast = Fast(models.Unigram(vocabulary, unk_id=special.index("<unk>")))
        fast.normalizer = normalizer
        fast.pre_tokenizer = pre_tokenizers.Sequence(spaced)
        fast.decoder = decoders.Metaspace(prepend_scheme="always")
        return fast

    def tiny(self) -> Self:
        smaller = {"vocab_size": min(self.vocab_size, 1024), "sample_bytes": min(self.sample_bytes, 300_000)}
        return self.model_copy(update=smaller)


class Unigram(UnigramTokenizer, name="unigram"):
    """T5's tokenizer, trained on the corpus: `A </s>`, `A </s> B </s>`, and sentinels from `<extra_id_0>` on."""

    paper = "arXiv:1804.10959"
    offers: ClassVar[frozenset[str]] = frozenset({"sentinels"})

    sentinels: int = Field(100, ge=1)
    """Number of tokens that replace removed spans, as in T5."""

    @model_validator(mode="after")
    def _leaves_room(self) -> Self:
        if self.sentinels > self.vocab_size // 2:
            raise ValueError(
                f"{self.sentinels} sentinels leave too few of {self.vocab_size} tokens for pieces; raise vocab_size"
            )
        return self

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import processors
        from transformers import PreTrainedTokenizerFast

        sentinels = [f"<extra_id_{number}>" for number in range(self.sentinels)]
        fast = self._train_unigram(texts, ["<pad>", "</s>", "<unk>"], sentinels)
        fast.post_processor = processors.TemplateProcessing(
            single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", fast.token_to_id("</s>"))]
        )
        return PreTrainedTokenizerFast(
            tokenizer_object=fast,
            pad_token="<pad>",
            eos_token="</s>",
            unk_token="<unk>",
            extra_special_tokens=sentinels,
            model_input_names=["input_ids", "attention_mask"],
        )


def _split_at_rare(words: Counter[str], most: int) -> Counter[str]:
    """`words` without rare characters, all but the `most` frequent ones, and split at these."""
    characters: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            characters[character] += count
    ranked = sorted((-count, character) for character, count in characters.items())
    rare = str.maketrans({character: " " for _, character in ranked[most:]})
    result: Counter[str] = Counter()
    for word, count in words.items():
        for part in word.translate(rare).split():
            result[part] += count
    return result
