"""Encoding each word once: text is mostly words that stood in it before, and a tokenizer cuts them anew every time.

Where a tokenizer cuts text at spaces whatever stands on their other side, the encoding of a text is the encodings of its
words, end to end. Those are kept in a table, and a text becomes a row of look-ups. What may be cut apart is read from the
tokenizer's own description; a kind that is not known here is not cut.
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

MOST = 2**18
"""Words that are remembered, about 50 MB of them; then all are forgotten and learnt again."""
TOGETHER = 500
"""New words that are encoded as one text."""
LONGEST = 64
"""Characters of the longest word that is remembered: what is longer hardly recurs."""
SPACED = r"\S+"
BYTE_LEVEL = r" ?\S+|\s+(?!\S)|\s"
"""How GPT-2's expression treats spaces: the last one before a word belongs to it, the others stand by themselves."""
SIGNS = r"!-/:-@\[-`{-~"
"""The punctuation of ASCII, each a word of its own to BERT."""
IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff"
"""Chinese characters that BERT's normalizer puts spaces around; that others are left inside words is no mistake."""
UNEVEN = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"
"""Characters that are spaces to Python and none to some tokenizer: a text with one of them is not cut."""
LOOKS_AT_ONE = {"BertNormalizer", "Lowercase", "NFD", "NFKD"}
"""Normalizers that rewrite each character by itself."""
COMPOSES = {"NFC", "NFKC"}
"""Normalizers that may draw a sign and the mark behind it together; nothing is drawn together with a space."""
CUTS_AT_SPACES = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
CUTS_FURTHER = {"Metaspace", "Split", "Digits", "Punctuation"}


class RememberedWords:
    """A tokenizer's encodings of words, for texts without special tokens around them."""

    def __init__(self, fast: Fast, expression: str, begins_with_space: bool, kind: type[np.unsignedinteger]) -> None:
        self._fast, self._begins_with_space, self._kind = fast, begins_with_space, kind
        self._words = re.compile(expression)
        # tokens that reach over the edges of a word, look at what stands there, or give a space to what follows them
        self._whole = sorted(
            one.content
            for one in fast.get_added_tokens_decoder().values()
            if (begins_with_space or one.lstrip or one.rstrip or one.single_word)
            or not self._words.fullmatch(one.content)
        )
        self._between = next(
            (
                (one.content, number)
                for number, one in sorted(fast.get_added_tokens_decoder().items())
                if not (one.lstrip or one.rstrip or one.single_word or one.normalized)
            ),
            None,
        )
        self._known: dict[str, bytes] = {}

    @classmethod
    def of(cls, fast: Fast, kind: type[np.unsignedinteger]) -> Self | None:
        """The words of `fast`, as ids of type `kind`; None where nothing says that its texts may be cut."""
        from tokenizers import Tokenizer as Fast

        said = json.loads(fast.to_str())
        expression = _expression(said)
        if expression is None:
            return None
        begins_with_space = False
        if expression == BYTE_LEVEL:
            # only the first word of a text is given a space
            begins_with_space = said["pre_tokenizer"]["add_prefix_space"]
            said["pre_tokenizer"]["add_prefix_space"] = False
            fast = Fast.from_str(json.dumps(said))
        return cls(fast, expression, begins_with_space, kind)

    def encode(self, texts: Sequence[str]) -> list[bytes | None]:
        """The ids of each text as bytes; None for a text that must not be cut."""
        found = [self._words.findall(self._begun(text)) if self._may_cut(text) else None for text in texts]
        met: set[str] = set().union(*(words for words in found if words is not None))
        if len(self._known) + len(met) > MOST:
            self._known.clear()
        if new := list(met - self._known.keys()):
            for at in range(0, len(new), TOGETHER):
                self._learn(new[at : at + TOGETHER])
        result = [None if words is None else b"".join(map(self._known.__getitem__, words)) for words in found]
        for word in new:
            if len(word) > LONGEST:
                del self._known[word]
        return result

    def _learn(self, words: Sequence[str]) -> None:
        if self._between is not None:
            # one text with a token between words is encoded in half the time that the words are
            content, number = self._between
            (whole,) = self._fast.encode_batch_fast([content.join(words)], add_special_tokens=False)
            ids = np.asarray(whole.ids, dtype=self._kind)
            cuts = np.flatnonzero(ids == number)
            if len(cuts) == len(words) - 1:
                self._known.update(zip(words, _between(ids, cuts), strict=True))
                return
        for word, one in zip(words, self._fast.encode_batch_fast(words, add_special_tokens=False), strict=True):
            self._known[word] = np.asarray(one.ids, dtype=self._kind).tobytes()

    def _may_cut(self, text: str) -> bool:
        return not any(sign in text for sign in UNEVEN) and not any(token in text for token in self._whole)

    def _begun(self, text: str) -> str:
        return " " + text if self._begins_with_space and text and text[0] != " " else text


def _between(ids: NDArray[np.unsignedinteger], cuts: NDArray[np.int64]) -> Iterator[bytes]:
    """The bytes of `ids` before, between and behind the places `cuts`."""
    data, size = ids.tobytes(), ids.itemsize
    begins = [0, *((cuts + 1) * size).tolist()]
    ends = [*(cuts * size).tolist(), len(data)]
    return (data[begin:end] for begin, end in zip(begins, ends, strict=True))


def _expression(said: dict[str, Any]) -> str | None:
    """What finds the words of a tokenizer that says this of itself; None where its texts may not be cut."""
    normalizers = _parts(said["normalizer"], "normalizers")
    kinds = {one["type"] for one in normalizers}
    first, *others = _parts(said["pre_tokenizer"], "pretokenizers") or [{"type": None}]
    if not kinds <= LOOKS_AT_ONE | COMPOSES or said["model"].get("dropout"):
        return None
    if first["type"] == "ByteLevel":
        return BYTE_LEVEL if first["use_regex"] and said["pre_tokenizer"] is first else None
    if first["type"] not in CUTS_AT_SPACES or any(
        one["type"] not in CUTS_FURTHER or one.get("prepend_scheme") == "first" for one in others
    ):
        return None
    if first["type"] != "BertPreTokenizer" or not kinds <= LOOKS_AT_ONE:
        return SPACED
    alone = IDEOGRAPHS if any(one.get("handle_chinese_chars") for one in normalizers) else ""
    return rf"[^\s{SIGNS}{alone}]+|[{SIGNS}]+" + (f"|[{alone}]" if alone else "")


def _parts(said: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    """The members of a sequence, or the one part that it is."""
    if said is None:
        return []
    return list(said[key]) if said["type"] == "Sequence" else [said]
