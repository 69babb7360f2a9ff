"""Names of entities in the tokens of a tokenizer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

BEGINS, CONTINUES, SPECIAL = range(3)
"""What a token does: begins a word, continues the word of the token before it unless that is special, or is special."""
INSIDE = "##"
"""Mark of a token that continues a word."""
SPACES = ("Ġ", "▁")
"""Marks with which byte-level and SentencePiece tokenizers write a space before a word."""
LONGEST_CHARACTER = 4
"""Bytes of a character in UTF-8, at most."""
_UNSPACED = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Characters of scripts without spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, kana and Han."""


def names_in_tokens(
    senses: Mapping[str, Mapping[int, float]], tokenizer: PreTrainedTokenizerFast
) -> dict[tuple[int, ...], dict[int, float]]:
    """The tokens of each name of `senses` → index and prior of the entities that it may mention; without names that
    have unknown tokens. Of names that are written alike the first counts."""
    fast = tokenizer.backend_tokenizer
    fast.no_truncation()
    fast.no_padding()
    # a word inside a text has a leading space, the first one of a text may not
    leads = ("", " ") if _marks_spaces(tokenizer) else ("",)
    result: dict[tuple[int, ...], dict[int, float]] = {}
    for lead in leads:
        written = fast.encode_batch_fast([lead + name for name in senses], add_special_tokens=False)
        for encoding, of_name in zip(written, senses.values(), strict=True):
            if encoding.ids and tokenizer.unk_token_id not in encoding.ids:
                result.setdefault(tuple(encoding.ids), dict(of_name))
    return result


def token_roles(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """What each token does: `BEGINS`, `CONTINUES` or `SPECIAL`, by its id."""
    vocabulary = tokenizer.get_vocab()
    marks = _marks_spaces(tokenizer)
    # a byte-level vocabulary has no character beyond those that it writes bytes as
    bytes_of = _bytes_by_character() if not any(SPACES[1] in token for token in vocabulary) else {}
    roles = [BEGINS] * len(tokenizer)
    for token, index in vocabulary.items():
        if token.startswith(INSIDE) or (marks and _continues_word(token, bytes_of)):
            roles[index] = CONTINUES
    for index in tokenizer.all_special_ids:
        roles[index] = SPECIAL
    return roles


def _continues_word(token: str, bytes_of: Mapping[str, int]) -> bool:
    """Whether a token continues a word where words begin with the mark of a space: it begins with a letter, a digit or
    an accent of a script that has spaces, or inside of a character. `bytes_of` is empty but for a byte-level
    vocabulary."""
    written = token[:LONGEST_CHARACTER]
    if written and bytes_of and all(one in bytes_of for one in written):
        first = _first_character(bytes(bytes_of[one] for one in written))
    else:
        first = token[:1]
    if _UNSPACED.match(first):
        return False
    return not first or first.isalnum() or unicodedata.category(first).startswith("M")


def _first_character(text: bytes) -> str:
    """The first character of UTF-8 `text`, and the lowest of those that it may be where the text ends inside of it;
    empty where it begins inside of one."""
    size = next(size for size, most in ((1, 0xBF), (2, 0xDF), (3, 0xEF), (4, 0xFF)) if text[0] <= most)
    return text[:size].ljust(size, b"\x80").decode(errors="ignore")[:1]


def _bytes_by_character() -> dict[str, int]:
    """The byte that each character of a byte-level vocabulary stands for (Radford et al. 2019)."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return {character: byte for byte, character in bytes_to_unicode().items()}


def _marks_spaces(tokenizer: PreTrainedTokenizerFast) -> bool:
    return any(token.startswith(SPACES) for token in tokenizer.get_vocab())
