"""Texts as annotations read them: tokenized as a whole, or word by word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.parts.annotations import Annotation
from pipelines.task_families.tokenized import TokenizedText, annotated
from pipelines.task_families.writing_systems import join_words, with_leading_spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast


def whole(text: str, tokenizer: PreTrainedTokenizerFast, **columns: Any) -> tuple[TokenizedText, list[str]]:
    """`text` in one piece, and its tokens."""
    encoded = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
    spans = np.asarray(encoded.offsets, dtype=np.int64).reshape(-1, 2)
    return TokenizedText({"text": text, **columns}, text, "text", spans, None, "pages.parquet, row 7"), encoded.tokens


def by_word(words: list[str], tokenizer: PreTrainedTokenizerFast, **columns: Any) -> tuple[TokenizedText, list[str]]:
    """`words`, each by itself, and their tokens."""
    fast = tokenizer.backend_tokenizer
    encoded = fast.encode(with_leading_spaces(words), is_pretokenized=True, add_special_tokens=False)
    spans = np.asarray(encoded.offsets, dtype=np.int64).reshape(-1, 2)
    row = {"tokens": words, **columns}
    numbers = np.asarray(encoded.word_ids, dtype=np.int64)
    return TokenizedText(row, words, "tokens", spans, numbers, "example 7"), encoded.tokens


def joined(words: list[str], tokenizer: PreTrainedTokenizerFast, **columns: Any) -> tuple[TokenizedText, list[str]]:
    """`words` as the text of a page."""
    return whole(join_words(words), tokenizer, tokens=words, **columns)


def values_of(annotation: Annotation, text: TokenizedText) -> NDArray[np.int64]:
    """The values of the one channel of `annotation`."""
    (values,) = annotated([annotation], text).values()
    return values
