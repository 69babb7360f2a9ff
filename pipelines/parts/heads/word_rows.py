"""Sentences given as words, as rows of tokens in which every word is found again, also by other tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.errors import RecipeError
from pipelines.parts.heads.token_rows import TokenRows
from pipelines.task_families.columns import Columns
from pipelines.task_families.encoding import FieldArrays
from pipelines.task_families.writing_systems import with_leading_spaces
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast

    from pipelines.task_families.tokenized import RowTexts


class WordRows(NamedTuple):
    """Sentences as rows of tokens."""

    rows: TokenRows
    words: Sequence[NDArray[np.int64]]
    """int64 [covered words, 3] of each: index of each word that has a token, positions of its first and last token."""

    def columns(self, prefix: str) -> Columns:
        """What the rows are made of, by names that begin with `prefix`."""
        return {**self.rows.columns(prefix), f"{prefix}words": self.words}

    def with_columns(self, columns: Columns, prefix: str) -> WordRows:
        """Other rows of the same tokenizer, made of `columns`."""
        return WordRows(self.rows.with_columns(columns, prefix), columns[f"{prefix}words"])


def rows_of_words(
    sentences: Sequence[Sequence[str]],
    tokenizer: PreTrainedTokenizerFast,
    length: int,
    sources: RowTexts | None = None,
) -> WordRows:
    """`sentences` as rows of at most `length` tokens, with the channels that `sources` annotate.

    Raises RecipeError where `length` has no room besides special tokens.
    """
    fast = tokenizer.backend_tokenizer
    frame = fast.num_special_tokens_to_add(False)
    if length <= frame:
        raise RecipeError(f"budget.length: {length} tokens have no room besides {frame} special tokens; raise it")
    fast.no_padding()
    fast.enable_truncation(length)
    # not encode_batch_fast, whose encodings lack the word of each token
    encodings = fast.encode_batch([with_leading_spaces(words) for words in sentences], is_pretokenized=True)
    fast.no_truncation()
    return WordRows(TokenRows.of(encodings, tokenizer, sources), [_words(encoding.word_ids) for encoding in encodings])


def _words(words: Sequence[int | None]) -> NDArray[np.int64]:
    """int64 [covered words, 3]: each word that has a token, its first and its last one. `words` is that of each
    token."""
    tokens: dict[int, tuple[int, int]] = {}
    for token, word in enumerate(words):
        if word is not None:
            tokens[word] = (tokens.get(word, (token,))[0], token)
    return np.asarray([(word, *ends) for word, ends in sorted(tokens.items())], dtype=np.int64).reshape(-1, 3)


class FeatureRows:
    """Sentences as rows of several other networks, aligned with the tokens of one's own rows by the words of both."""

    def __init__(
        self, lengths: NDArray[np.int64], words: Sequence[NDArray[np.int64]], others: Sequence[WordRows]
    ) -> None:
        self.others = others
        self._lengths, self._words = lengths, words

    def collate(self, chosen: NDArray[np.int64], length: int) -> FieldArrays:
        """The fields of the sentences `chosen` [B], for rows of `length` tokens."""
        rows = [other.rows.batch(chosen.tolist()) for other in self.others]
        longest = max(one[Field.INPUT_IDS].shape[1] for one in rows)
        words = np.full((len(chosen), len(rows), length, 2), -1, dtype=np.int64)
        for row, item in enumerate(chosen.tolist()):
            length, own = int(self._lengths[item]), self._words[item]
            for number, other in enumerate(self.others):
                words[row, number, :length] = _aligned(length, own, other.words[item])
        return {
            Field.FEATURE_IDS: _stacked([one[Field.INPUT_IDS] for one in rows], longest),
            Field.FEATURE_MASK: _stacked([one[Field.ATTENTION_MASK] for one in rows], longest),
            Field.FEATURE_WORDS: words,
        }

    def columns(self) -> Columns:
        """What the rows of the other networks are made of, by name."""
        return {
            name: column
            for number, other in enumerate(self.others)
            for name, column in other.columns(f"feature {number} ").items()
        }

    def with_columns(
        self, lengths: NDArray[np.int64], words: Sequence[NDArray[np.int64]], columns: Columns
    ) -> FeatureRows:
        """Other sentences for the same networks, made of `columns`."""
        others = [other.with_columns(columns, f"feature {number} ") for number, other in enumerate(self.others)]
        return FeatureRows(lengths, words, others)


def _aligned(length: int, own: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 [length, 2]: for each token of one's own row, the first and last token of its word in the other row."""
    result = np.full((length, 2), -1, dtype=np.int64)
    ends = {word: (first, last) for word, first, last in other.tolist()}
    for word, first, last in own.tolist():
        result[first : last + 1] = ends.get(word, (-1, -1))
    return result


def _stacked(rows: Sequence[NDArray[np.int64]], longest: int) -> NDArray[np.int64]:
    """int64 [B, F, longest]: arrays [B, …] side by side; what is beyond a row is 0, and masked."""
    result = np.zeros((len(rows[0]), len(rows), longest), dtype=np.int64)
    for number, one in enumerate(rows):
        result[:, number, : one.shape[1]] = one
    return result
