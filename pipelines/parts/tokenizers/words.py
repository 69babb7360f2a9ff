"""Word tokenizer: the most frequent whole words, for networks with one vector per word (Mikolov et al. 2013)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field

from pipelines.errors import DataError
from pipelines.parts.tokenizers import MOST_WORDS, Tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Fast
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<unk>", "<eos>"]


class Words(Tokenizer, name="words"):
    """Runs of letters and digits, and runs of symbols; the most frequent ones have an id, all others are `<unk>`.

    Ids are sorted by descending frequency. A text is `A <eos>`, a pair `A <eos> B <eos>`. Frequencies are stored with
    the tokenizer: `init_kwargs["counts"]` is list[int] [size], by id.
    """

    paper = "arXiv:1310.4546"
    offers: ClassVar[frozenset[str]] = frozenset({"counts"})
    expected_unknown_share: ClassVar[float] = 0.25

    vocab_size: int = Field(30_000, ge=64, le=MOST_WORDS)
    """Maximum number of tokens, including special tokens."""
    min_count: int = Field(5, ge=1)
    """Minimum frequency of a word with an id, as in the word2vec tool."""
    lowercase: bool = True
    """Whether to lowercase; accents are kept."""
    split_chinese: bool = True
    """Whether each Chinese character is a word; false if the text already has spaces between words."""
    split: Literal["symbols", "spaces"] = Field("symbols", exclude_if=lambda value: value == "symbols")
    """Where words end: also before and after symbols, or at spaces only, for text that is given as words."""
    sample_bytes: int = Field(20_000_000, gt=0)
    """UTF-8 bytes of text to learn the vocabulary from."""

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import models, processors
        from transformers import PreTrainedTokenizerFast

        splitter = self._untrained(models.WordLevel(unk_token="<unk>"))
        frequencies: Counter[str] = Counter()
        documents = 0
        for text in texts:
            normal = splitter.normalizer.normalize_str(text)
            frequencies.update(word for word, _ in splitter.pre_tokenizer.pre_tokenize_str(normal))
            documents += 1
        ranked = sorted(
            (-count, word) for word, count in frequencies.items() if count >= self.min_count and word not in SPECIAL
        )
        kept = [(word, -count) for count, word in ranked[: self.vocab_size - len(SPECIAL)]]
        if len(kept) < 2:
            occurring = "1 word of the text occurs" if kept else "no words of the text occur"
            raise DataError(
                f"tokenizer words: {occurring} {self.min_count} times or more, and a vocabulary needs two; give more "
                "text, or lower min_count"
            )
        unknown = frequencies.total() - sum(count for _, count in kept)
        words = [*SPECIAL, *(word for word, _ in kept)]
        fast = self._untrained(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>"))
        fast.post_processor = processors.TemplateProcessing(
            single="$A <eos>", pair="$A <eos> $B <eos>", special_tokens=[("<eos>", words.index("<eos>"))]
        )
        return PreTrainedTokenizerFast(
            tokenizer_object=fast,
            pad_token="<pad>",
            unk_token="<unk>",
            eos_token="<eos>",
            model_input_names=["input_ids", "attention_mask"],
            counts=[0, unknown, documents, *(count for _, count in kept)],
        )

    def _untrained(self, model: WordLevel) -> Fast:
        from tokenizers import Tokenizer as Fast
        from tokenizers import normalizers, pre_tokenizers

        fast = Fast(model)
        fast.normalizer = normalizers.BertNormalizer(
            handle_chinese_chars=self.split_chinese, strip_accents=False, lowercase=self.lowercase
        )
        by_symbols = self.split == "symbols"
        fast.pre_tokenizer = pre_tokenizers.Whitespace() if by_symbols else pre_tokenizers.WhitespaceSplit()
        return fast

    def tiny(self) -> Self:
        smaller = {"vocab_size": min(self.vocab_size, 1024), "sample_bytes": min(self.sample_bytes, 300_000)}
        return self.model_copy(update=smaller)
