"""A text with its tokens, as an annotation reads it: of a document of a corpus, or of a labelled example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from pipelines.errors import DataError
from pipelines.task_families.excerpt import number_of
from pipelines.task_families.writing_systems import join_words
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families import Row

UNCOVERED = -1
"""Index of the word of a token that belongs to none."""


class Annotator(Protocol):
    """What makes channels: a member of the family of annotations, as floors below that family know it."""

    @property
    def channels(self) -> tuple[Channel, ...]: ...

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]: ...


@dataclass(frozen=True)
class TokenizedText:
    """One text and its tokens, without special tokens."""

    row: Row
    """Columns of the document or the example that the text belongs to."""
    text: str | Sequence[str]
    """The text, or its words where it was tokenized word by word."""
    column: str
    """Column that holds the text or the words; empty where the text was composed of several."""
    spans: NDArray[np.int64]
    """int64 [T, 2]: begin and end of each token in characters: of the text, or of its word."""
    words: NDArray[np.int64] | None
    """int64 [T]: index of the word of each token; None for a text that was tokenized as a whole."""
    where: str
    """File and row, or the number of the example, for error messages."""

    def __len__(self) -> int:
        return len(self.spans)

    def word_indices(self, column: str) -> NDArray[np.int64]:
        """int64 [T]: index of the word in the list `column` that each token begins in; UNCOVERED for none.

        A text that was tokenized as a whole must be the words joined. Raises DataError naming the row otherwise.
        """
        if self.words is not None and self.column == column:
            return self.words
        words: Sequence[str] = self.value(column)
        if not isinstance(self.text, str) or self.text != join_words(words):
            raise DataError(
                f"{self.where}: its text is not the words of the column {column!r}, joined; write the text from them, "
                "and leave out cleaning rules that change it"
            )
        ends = np.asarray([len(join_words(words[: number + 1])) for number in range(len(words))], dtype=np.int64)
        return word_at(self.spans, ends)

    def value(self, column: str) -> Any:
        """The row's value of `column`. Raises DataError naming the row where it is missing."""
        value = self.row.get(column)
        if value is None:
            raise DataError(f"{self.where}: the column {column!r} is missing or empty")
        return value


def word_at(spans: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 [T]: the word of each token with the characters `spans` [T, 2], for words that end before `ends` [W].

    A token that begins with the space before a word belongs to that word.
    """
    last = np.maximum(spans[:, 1] - 1, spans[:, 0])
    # the first token that reaches into a word belongs to it, as in segmentations
    result: NDArray[np.int64] = np.searchsorted(ends, last, side="right").astype(np.int64)
    return np.where(result < len(ends), result, UNCOVERED)


@dataclass(frozen=True)
class RowTexts:
    """The texts of encoded rows, for their annotations."""

    annotations: Sequence[Annotator]
    examples: Sequence[Row]
    """Example of each row."""
    texts: Sequence[Sequence[str | Sequence[str]]]
    """One text or two of each row, by sequence id; a text is a string, or a list of words."""
    columns: Sequence[Sequence[str]]
    """Columns of these texts."""
    numbers: Sequence[int]
    """Number of the example of each row, for error messages."""

    @classmethod
    def of(
        cls,
        annotations: Sequence[Annotator],
        examples: Sequence[Row],
        numbers: Sequence[int],
        texts: Sequence[str | Sequence[str | Sequence[str]]],
        columns: Sequence[Sequence[str]],
    ) -> Self:
        """Rows of the examples with `numbers`, each of one of `texts` or of several."""
        return cls(
            annotations,
            [examples[number] for number in numbers],
            [(one,) if isinstance(one, str) else one for one in texts],
            columns,
            [number_of(examples, number) for number in numbers],
        )

    @property
    def channels(self) -> list[Channel]:
        return [channel for one in self.annotations for channel in one.channels]

    def values(self, encodings: Sequence[Any]) -> dict[str, list[NDArray[Any]]]:
        """Channel → [L, *shape] of each row, special tokens included; `encodings` are of the tokenizers
        library, with offsets."""
        result: dict[str, list[NDArray[Any]]] = {channel.name: [] for channel in self.channels}
        for row, encoding in enumerate(encodings):
            for name, values in self._row(row, encoding).items():
                result[name].append(values)
        return result

    def _row(self, row: int, encoding: Any) -> dict[str, NDArray[Any]]:
        sequences = np.asarray([-1 if one is None else one for one in encoding.sequence_ids], dtype=np.int64)
        spans = np.asarray(encoding.offsets, dtype=np.int64).reshape(-1, 2)
        result = {channel.name: _blank(channel, len(sequences)) for channel in self.channels}
        for number, (text, column) in enumerate(zip(self.texts[row], self.columns[row], strict=True)):
            tokens = np.flatnonzero(sequences == number)
            words = None
            if not isinstance(text, str):
                words = np.asarray([encoding.word_ids[token] for token in tokens], dtype=np.int64)
            where = f"example {self.numbers[row]}"
            one = TokenizedText(self.examples[row], text, column, spans[tokens], words, where)
            for name, values in annotated(self.annotations, one).items():
                result[name][tokens] = values
        for channel in self.channels:
            result[channel.name] = with_edges(result[channel.name], sequences >= 0, channel)
        return result


def annotated(annotations: Sequence[Annotator], text: TokenizedText) -> dict[str, NDArray[Any]]:
    """Channel → [T, *shape] of all `annotations`. Raises DataError naming the row for values out of range."""
    result: dict[str, NDArray[Any]] = {}
    for one in annotations:
        made = one.annotate(text)
        for channel in one.channels:
            values = np.asarray(made[channel.name], dtype=channel.kind)
            assert values.shape == (len(text), *channel.shape), f"{channel.name}: {values.shape}"
            if channel.size is None:
                if not np.isfinite(values).all():
                    raise DataError(f"{text.where}: the channel {channel.name!r} has a value that is no finite number")
            elif values.size and (values.min() < 0 or values.max() >= channel.size):
                wrong = int(values.min() if values.min() < 0 else values.max())
                raise DataError(
                    f"{text.where}: the channel {channel.name!r} has the value {wrong}, outside its range 0 to "
                    f"{channel.size - 1}"
                )
            result[channel.name] = values
    return result


def with_edges(values: NDArray[Any], is_text: NDArray[np.bool_], channel: Channel) -> NDArray[Any]:
    """`values` [L, *shape] of a row, with those of its special tokens: of `channel.edges`, or of the nearest token of
    the text before, at the beginning of the text after."""
    tokens = np.flatnonzero(is_text)
    if len(tokens) == 0:
        return values
    special = np.flatnonzero(~is_text)
    before = special < tokens[0]
    if channel.edges is not None:
        values[special[before]], values[special[~before]] = channel.edges
    else:
        values[special] = values[tokens[np.maximum(tokens.searchsorted(special) - 1, 0)]]
    return values


def _blank(channel: Channel, length: int) -> NDArray[Any]:
    return np.full((length, *channel.shape), channel.padding, dtype=channel.kind)
