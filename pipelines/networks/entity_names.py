"""Names of entities in the tokens of a tokenizer."""

from __future__ import annotations

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
    marks = _marks_spaces(tokenizer)
    roles = [BEGINS] * len(tokenizer)
    for token, index in tokenizer.get_vocab().items():
        if token.startswith(INSIDE) or (marks and token[:1].isascii() and token[:1].isalnum()):
            roles[index] = CONTINUES
    for index in tokenizer.all_special_ids:
        roles[index] = SPECIAL
    return roles


def _marks_spaces(tokenizer: PreTrainedTokenizerFast) -> bool:
    return any(token.startswith(SPACES) for token in tokenizer.get_vocab())
