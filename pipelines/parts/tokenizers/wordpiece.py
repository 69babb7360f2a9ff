"""WordPiece: greedy longest-match subwords (Wu et al. 2016; Devlin et al. 2018, §3)."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field

from pipelines.parts.tokenizers import MOST_WORDS, Tokenizer
from pipelines.parts.tokenizers.bert_frame import SPECIAL, with_special_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Fast
    from tokenizers.models import WordPiece as WordPieceModel
    from tokenizers.trainers import WordPieceTrainer
    from transformers import PreTrainedTokenizerFast

INSIDE = "##"
"""Prefix of a token that does not begin a word."""
ASCII = string.ascii_letters + string.digits + string.punctuation


class WordPiece(Tokenizer, name="wordpiece"):
    """BERT's tokenizer, trained on the corpus. Chinese characters are tokens of their own, as in BERT.

    Characters of ASCII are in the vocabulary whether the corpus has them or not, as in BERT's two: Chinese newspapers
    have none of the commas that reviews are full of. They are left out of vocabularies that they would fill by more
    than a quarter.
    """

    paper = "arXiv:1810.04805"
    offers: ClassVar[frozenset[str]] = frozenset({"mask", "new_words"})

    vocab_size: int = Field(8192, ge=64, le=MOST_WORDS)
    """Number of tokens, including special tokens."""
    lowercase: bool = True
    """Whether to lowercase and strip accents, as in BERT-uncased."""
    sample_bytes: int = Field(20_000_000, gt=0)
    """UTF-8 bytes of text to learn the vocabulary from."""

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        from tokenizers import models

        texts = list(texts)
        fast = self._untrained(models.WordPiece(unk_token="[UNK]"))
        alphabet, letters = self._alphabet(texts, fast)
        # the library assigns ids to letters inside words in the order of a hash table, different each time, and breaks
        # ties
        # between pairs of equal count by these ids: so they are given in a fixed order
        inside = [INSIDE + letter for letter in letters]
        fast.train_from_iterator(texts, self._trainer(alphabet, [*SPECIAL, *inside]))
        # a new tokenizer, in which these letters are ordinary tokens instead of special ones
        trained = self._untrained(
            models.WordPiece(vocab=fast.get_vocab(), unk_token="[UNK]", max_input_chars_per_word=100)
        )
        return with_special_tokens(trained)

    def _untrained(self, model: WordPieceModel) -> Fast:
        from tokenizers import Tokenizer as Fast
        from tokenizers import decoders, normalizers, pre_tokenizers

        fast = Fast(model)
        fast.normalizer = normalizers.BertNormalizer(lowercase=self.lowercase, strip_accents=None)
        fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        fast.decoder = decoders.WordPiece(prefix=INSIDE)
        return fast

    def _alphabet(self, texts: list[str], fast: Fast) -> tuple[list[str], list[str]]:
        """The most frequent characters with those of ASCII, and those of them that can also occur inside a word.

        They take at most three quarters of the vocabulary: nearly all characters of Chinese, with room for subwords.
        """
        raw_counts: Counter[str] = Counter()
        for text in texts:
            raw_counts.update(text)
        counts: Counter[str] = Counter()
        for character, count in raw_counts.items():
            # normalise each distinct character once
            for normal in fast.normalizer.normalize_str(character):
                counts[normal] += count
        tokens = self._tokens_of_ascii(fast)
        counts.update(dict.fromkeys(tokens, 0))
        left = 3 * (self.vocab_size - len(SPECIAL)) // 4 - sum(tokens.values())
        alphabet: list[str] = []
        letters: list[str] = []
        full = False
        for _, character in sorted((-count, character) for character, count in counts.items()):
            if character.isspace() or (full and character not in tokens):
                continue
            inside = _joins_words(character, fast)
            if character not in tokens:
                full = 1 + inside > left
                if full:
                    continue
                left -= 1 + inside
            alphabet.append(character)
            letters += [character] * inside
        return alphabet, letters

    def _tokens_of_ascii(self, fast: Fast) -> dict[str, int]:
        """Character of ASCII → its tokens: one, and one more if it can be inside a word. Empty if there is no room."""
        normal = dict.fromkeys(fast.normalizer.normalize_str(ASCII))
        tokens = {character: 1 + _joins_words(character, fast) for character in normal}
        return tokens if 4 * sum(tokens.values()) <= self.vocab_size else {}

    def _trainer(self, alphabet: list[str], special: list[str]) -> WordPieceTrainer:
        from tokenizers import trainers

        return trainers.WordPieceTrainer(
            vocab_size=self.vocab_size,
            special_tokens=special,
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            show_progress=False,
            continuing_subword_prefix=INSIDE,
        )

    def tiny(self) -> Self:
        smaller = {"vocab_size": min(self.vocab_size, 1024), "sample_bytes": min(self.sample_bytes, 300_000)}
        return self.model_copy(update=smaller)


def _joins_words(letter: str, fast: Fast) -> bool:
    """Whether `letter` can be inside a word: punctuation marks and Chinese characters are words of their own."""
    return len(fast.pre_tokenizer.pre_tokenize_str(fast.normalizer.normalize_str(f"a{letter}a"))) == 1
