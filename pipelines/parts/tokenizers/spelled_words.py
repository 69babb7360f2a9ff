"""Words with their spelling: a token for each frequent word, the bytes of all others, for networks that read words
letter by letter (Peters et al. 2018)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field

from pipelines.parts.tokenizers import MOST_WORDS, Tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Fast
    from tokenizers.models import WordPiece
    from transformers import PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<unk>", "<s>"]
CONTINUING = "##"
"""Prefix of a byte that continues a word."""
SPACE = chr(256 + ord(" "))
"""The visible character that stands for a space."""
LONGEST = 200
"""Bytes of the longest word that is spelled; a longer one is `<unk>`."""


class SpelledWords(Tokenizer, name="spelled_words"):
    """Frequent words have a token; of any other word, its longest beginning that has one, then its bytes one by one.

    So no spelling is lost, and a network puts the tokens of a word together again: `init_kwargs["spellings"]` is
    list[str], by id the bytes of a token as characters 0 to 255 (empty for special tokens), and
    `init_kwargs["continuing"]` list[int], the ids that continue a word. A text is `<s> A <s>`; `<s>` ends documents,
    too.
    """

    paper = "arXiv:1802.05365"
    offers: ClassVar[frozenset[str]] = frozenset({"spelling"})

    vocab_size: int = Field(30_000, ge=1024, le=MOST_WORDS)
    """Maximum number of tokens, including special tokens and 512 for bytes."""
    min_count: int = Field(3, ge=1)
    """Minimum frequency of a word with a token, as in the vocabulary of the One Billion Word Benchmark."""
    sample_bytes: int = Field(20_000_000, gt=0)
    """UTF-8 bytes of text to learn the vocabulary from."""

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import models, processors
        from transformers import PreTrainedTokenizerFast

        letters = _letters()
        alphabet = sorted(letters)
        known = [*SPECIAL, *alphabet, *(CONTINUING + letter for letter in alphabet)]
        splitter = self._untrained(models.WordPiece({"<unk>": 0}, unk_token="<unk>")).pre_tokenizer
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(word for word, _ in splitter.pre_tokenize_str(text))
        taken = set(known)
        ranked = sorted(
            (-count, word)
            for word, count in counts.items()
            if count >= self.min_count and word not in taken and not word.startswith(CONTINUING)
        )
        words = [*known, *(word for _, word in ranked[: self.vocab_size - len(known)])]
        vocabulary = {word: index for index, word in enumerate(words)}
        model = models.WordPiece(
            vocabulary, unk_token="<unk>", continuing_subword_prefix=CONTINUING, max_input_chars_per_word=LONGEST
        )
        fast = self._untrained(model)
        fast.post_processor = processors.TemplateProcessing(
            single="<s> $A <s>", pair="<s> $A <s> $B <s>", special_tokens=[("<s>", vocabulary["<s>"])]
        )
        continuing = range(len(SPECIAL) + len(alphabet), len(known))
        return PreTrainedTokenizerFast(
            tokenizer_object=fast,
            pad_token="<pad>",
            unk_token="<unk>",
            eos_token="<s>",
            model_input_names=["input_ids", "attention_mask"],
            spellings=["" if word in SPECIAL else _spelled(word, letters) for word in words],
            continuing=list(continuing),
        )

    def _untrained(self, model: WordPiece) -> Fast:
        from tokenizers import Tokenizer as Fast
        from tokenizers import decoders, pre_tokenizers

        fast = Fast(model)
        # words as of spaces and symbols, then their bytes as visible characters
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        fast.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), byte_level])
        glued = decoders.WordPiece(prefix=CONTINUING, cleanup=False)
        fast.decoder = decoders.Sequence([glued, decoders.Replace(" ", SPACE), decoders.ByteLevel()])
        return fast

    def tiny(self) -> Self:
        smaller = {"vocab_size": min(self.vocab_size, 1024), "sample_bytes": min(self.sample_bytes, 300_000)}
        return self.model_copy(update=smaller)


def _spelled(token: str, letters: Mapping[str, str]) -> str:
    """The bytes of a token, as characters 0 to 255."""
    # `#` is a letter too, and the only words of one or two of them are those of the alphabet
    continues = len(token) == len(CONTINUING) + 1 and token.startswith(CONTINUING)
    return "".join(letters[letter] for letter in (token[len(CONTINUING) :] if continues else token))


def _letters() -> dict[str, str]:
    """The visible character that stands for each byte (Radford et al. 2019), and that byte as a character 0 to 255."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): chr(byte) for byte in printable} | {chr(256 + at): chr(byte) for at, byte in enumerate(others)}
