"""The special tokens that a tokenizer puts around a text, and between documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipelines.training.batches.encoded_documents import TEXT, DocumentTexts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PROBE = "a"
"""A text whose encoding shows the special tokens that a tokenizer adds."""


def frame(tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """The ids of the special tokens that a tokenizer adds before a text, and after it."""
    fast = tokenizer.backend_tokenizer
    fast.no_truncation()
    fast.no_padding()
    bare = len(fast.encode(PROBE, add_special_tokens=False).ids)
    framed = fast.encode(PROBE)
    before = framed.special_tokens_mask.index(0)
    return framed.ids[:before], framed.ids[before + bare :]


def end_of_document(tokenizer: PreTrainedTokenizerFast) -> int:
    """Id of the token between documents: the tokenizer's separator, else its end of sequence."""
    end = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
    assert end is not None, "a tokenizer needs a separator or an end-of-sequence token"
    return int(end)


def texts_of(tokenizer: PreTrainedTokenizerFast) -> tuple[str, ...]:
    """The string of each token by its id, as the tokenizer writes it; empty for an id without a token."""
    texts = [""] * len(tokenizer)
    for text, number in tokenizer.get_vocab().items():
        texts[number] = text
    return tuple(texts)


def document_texts(tokenizer: PreTrainedTokenizerFast, columns: Sequence[str] = ()) -> DocumentTexts:
    """How the texts in `columns` make up a document; where a tokenizer ends no text, the end of a document does."""
    end = end_of_document(tokenizer)
    if len(columns) < 2:
        return DocumentTexts(end, tuple(columns) or (TEXT,))
    before, after = frame(tokenizer)
    return DocumentTexts(end, tuple(columns), tuple(after) or (end,), tuple(before))
