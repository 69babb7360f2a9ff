"""Cache of the token ids of words: most words of a text have occurred before, and a tokenizer would encode each again.

Where a tokenizer splits text at spaces regardless of context, the encoding of a text is the concatenation of its words'
encodings. Those are cached, and encoding a text becomes a series of look-ups. Whether a tokenizer splits so is read
from its JSON description; texts of an unknown kind of tokenizer are encoded whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer as Fast

CAPACITY = 2**18
"""Number of cached words, about 50 MB; the cache is cleared when it is full."""
WORDS_AT_ONCE = 500
"""Number of new words that are encoded as one text."""
LONGEST = 64
"""Characters of the longest word that is cached: longer ones hardly recur."""
SPACED = r"\S+"
BYTE_LEVEL = r" ?\S+|\s+(?!\S)|\s"
"""How GPT-2's expression treats spaces: the last one before a word belongs to the word, each other one is separate."""
SIGNS = r"!-/:-@\[-`{-~"
"""ASCII punctuation; BERT treats each character as a word."""
IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff"
"""Chinese characters that BERT's normalizer surrounds with spaces. The list need not be complete: others stay inside
words."""
UNEVEN = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"
"""Characters that are spaces for Python but not for every tokenizer: a text with one of them is encoded whole."""
PER_CHARACTER = {"BertNormalizer", "Lowercase", "NFD", "NFKD"}
"""Normalizers that rewrite each character independently."""
COMPOSES = {"NFC", "NFKC"}
"""Normalizers that may compose a character with the combining mark after it; nothing composes with a space."""
SPLITS_AT_SPACES = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
SPLITS_FURTHER = {"Metaspace", "Split", "Digits", "Punctuation"}


class WordCache:
    """A tokenizer's encodings of words, for encoding texts without special tokens."""

    def __init__(self, fast: Fast, expression: str, begins_with_space: bool, kind: type[np.unsignedinteger]) -> None:
        self._fast, self._begins_with_space, self._kind = fast, begins_with_space, kind
        self._words = re.compile(expression)
        # texts with these tokens are encoded whole: the tokens span words, depend on their context, or absorb spaces
        self._whole = sorted(
            one.content
            for one in fast.get_added_tokens_decoder().values()
            if (begins_with_space or one.lstrip or one.rstrip or one.single_word)
            or not self._words.fullmatch(one.content)
        )
        self._separator = next(
            (
                (one.content, number)
                for number, one in sorted(fast.get_added_tokens_decoder().items())
                if not (one.lstrip or one.rstrip or one.single_word or one.normalized)
            ),
            None,
        )
        self._ids: dict[str, bytes] = {}

    @classmethod
    def of(cls, fast: Fast, kind: type[np.unsignedinteger]) -> Self | None:
        """A cache for the tokenizer `fast`, with ids of type `kind`; None where its texts must be encoded whole."""
        from tokenizers import Tokenizer as Fast

        description = json.loads(fast.to_str())
        expression = _expression(description)
        if expression is None:
            return None
        begins_with_space = False
        if expression == BYTE_LEVEL:
            # only the first word of a text gets a space
            begins_with_space = description["pre_tokenizer"]["add_prefix_space"]
            description["pre_tokenizer"]["add_prefix_space"] = False
            fast = Fast.from_str(json.dumps(description))
        return cls(fast, expression, begins_with_space, kind)

    def encode(self, texts: Sequence[str]) -> list[bytes | None]:
        """The ids of each text as bytes; None for a text that must be encoded whole."""
        split = [self._words.findall(self._prefixed(text)) if self._may_split(text) else None for text in texts]
        distinct: set[str] = set().union(*(words for words in split if words is not None))
        if len(self._ids) + len(distinct) > CAPACITY:
            self._ids.clear()
        if new := list(distinct - self._ids.keys()):
            for at in range(0, len(new), WORDS_AT_ONCE):
                self._add(new[at : at + WORDS_AT_ONCE])
        result = [None if words is None else b"".join(map(self._ids.__getitem__, words)) for words in split]
        for word in new:
            if len(word) > LONGEST:
                del self._ids[word]
        return result

    def _add(self, words: Sequence[str]) -> None:
        """Encode new `words` into the cache."""
        if self._separator is not None:
            # one text with a separator token between the words is encoded in half the time of the single words
            content, number = self._separator
            (whole,) = self._fast.encode_batch_fast([content.join(words)], add_special_tokens=False)
            ids = np.asarray(whole.ids, dtype=self._kind)
            separators = np.flatnonzero(ids == number)
            if len(separators) == len(words) - 1:
                self._ids.update(zip(words, _split_at(ids, separators), strict=True))
                return
        for word, one in zip(words, self._fast.encode_batch_fast(words, add_special_tokens=False), strict=True):
            self._ids[word] = np.asarray(one.ids, dtype=self._kind).tobytes()

    def _may_split(self, text: str) -> bool:
        return not any(sign in text for sign in UNEVEN) and not any(token in text for token in self._whole)

    def _prefixed(self, text: str) -> str:
        return " " + text if self._begins_with_space and text and text[0] != " " else text


def _split_at(ids: NDArray[np.unsignedinteger], separators: NDArray[np.int64]) -> Iterator[bytes]:
    """The bytes of `ids` before, between and after the positions `separators`."""
    data, size = ids.tobytes(), ids.itemsize
    begins = [0, *((separators + 1) * size).tolist()]
    ends = [*(separators * size).tolist(), len(data)]
    return (data[begin:end] for begin, end in zip(begins, ends, strict=True))


def _expression(description: dict[str, Any]) -> str | None:
    """Regular expression of the words of a tokenizer with this JSON description; None where its texts must be encoded
    whole."""
    normalizers = _parts(description["normalizer"], "normalizers")
    kinds = {one["type"] for one in normalizers}
    first, *others = _parts(description["pre_tokenizer"], "pretokenizers") or [{"type": None}]
    if not kinds <= PER_CHARACTER | COMPOSES or description["model"].get("dropout"):
        return None
    if first["type"] == "ByteLevel":
        return BYTE_LEVEL if first["use_regex"] and description["pre_tokenizer"] is first else None
    if first["type"] not in SPLITS_AT_SPACES or not all(_stays_within_words(one) for one in others):
        return None
    if first["type"] != "BertPreTokenizer" or not kinds <= PER_CHARACTER:
        return SPACED
    single = IDEOGRAPHS if any(one.get("handle_chinese_chars") for one in normalizers) else ""
    return rf"[^\s{SIGNS}{single}]+|[{SIGNS}]+" + (f"|[{single}]" if single else "")


def _stays_within_words(pre_tokenizer: dict[str, Any]) -> bool:
    """Whether a pre-tokenizer behind one that splits at spaces treats each word regardless of those around it."""
    if pre_tokenizer["type"] == "ByteLevel":  # rewrites bytes, and neither splits nor adds a space
        return not (pre_tokenizer["use_regex"] or pre_tokenizer["add_prefix_space"])
    return pre_tokenizer["type"] in SPLITS_FURTHER and pre_tokenizer.get("prepend_scheme") != "first"


def _parts(component: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    """The members of a `Sequence` component of a tokenizer; else the component itself as a list."""
    if component is None:
        return []
    return list(component[key]) if component["type"] == "Sequence" else [component]
