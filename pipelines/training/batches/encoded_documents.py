"""Tokenise documents together with what stands alongside their tokens, and documents that consist of several texts.

    text, translation   ─▶   The curtains were blue [SEP] [CLS] les rideaux étaient bleus [SEP]
                    texts:   0   0        0    0    0     1     1   1       1       1    1

The last token ends the document, as in every stream. Before each further text stand the special tokens that end a text
and begin one, so that it is framed like a text of its own (Lample & Conneau 2019, figure 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import DataError
from pipelines.task_families.tokenized import TokenizedText, annotated, with_edges
from pipelines.vocabulary import WORD_STARTS, Channel, Field, numbered_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer as Fast

    from pipelines.parts.annotations import Annotation
    from pipelines.parts.segmentations import Segmentation
    from pipelines.task_families import Row

TEXT = "text"
"""Name of the column that is read where a stage names none."""


@dataclass(frozen=True)
class DocumentTexts:
    """The texts that make up a document, and the tokens around them."""

    end: int
    """Id of the end-of-document token."""
    columns: tuple[str, ...] = (TEXT,)
    closing: tuple[int, ...] = ()
    """Ids after every text but the last."""
    opening: tuple[int, ...] = ()
    """Ids before every text but the first."""

    def framed(self, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids before and after the text `number` of a document."""
        last = number == len(self.columns) - 1
        return self.opening if number else (), (self.end,) if last else self.closing

    def of(self, document: Row, where: str) -> list[str]:
        """The texts of a document. Raises DataError naming it for a value that is not text."""
        texts = [document[column] for column in self.columns]
        for column, text in zip(self.columns, texts, strict=True):
            if not isinstance(text, str):
                raise DataError(f"{where}: the column {column!r} holds {text!r:.100}, expected text")
        return texts


@dataclass(frozen=True)
class DocumentChannels:
    """What makes the channels alongside the tokens of documents."""

    segmentation: Segmentation | None
    annotations: tuple[Annotation, ...] = ()
    texts: int = 1
    """Number of texts of a document."""

    @property
    def channels(self) -> list[Channel]:
        """The channels, in the order in which they are stored."""
        words = [WORD_STARTS] if self.segmentation is not None else []
        annotated_channels = [channel for one in self.annotations for channel in one.channels]
        return [*words, *numbered_texts(self.texts), *annotated_channels]

    @property
    def required_columns(self) -> list[str]:
        return sorted({name for one in self.annotations for name in one.columns})

    @property
    def optional_columns(self) -> list[str]:
        return sorted({name for one in self.annotations for name in one.optional_columns})

    def of(self, text: TokenizedText, number: int) -> Mapping[str, NDArray[Any]]:
        """Channel → [T, *shape] of the text `number` of a document. Raises DataError naming the row."""
        values = annotated(self.annotations, text)
        values[Field.TEXTS] = np.full(len(text), number)
        if self.segmentation is not None:
            assert isinstance(text.text, str)
            values[WORD_STARTS.name] = begins_word(text.spans, self.segmentation.word_starts(text.text))
        return values


def encode_documents(
    fast: Fast, kind: Any, documents: Sequence[tuple[int, Row]], path: str, texts: DocumentTexts, made: DocumentChannels
) -> tuple[bytes, NDArray[np.int64], list[NDArray[Any]]]:
    """The concatenated ids of `documents` as bytes of dtype `kind`, the number of tokens of each, and the values
    [N, *shape] of each of `made.channels`.

    `documents` are rows of the file `path` with their numbers. Raises DataError naming a row that cannot be annotated.
    """
    channels = made.channels
    values: dict[str, list[NDArray[Any]]] = {channel.name: [] for channel in channels}
    ids: list[int] = []
    sizes = []
    read = [texts.of(document, f"{path}, row {number}") for number, document in documents]
    encoded = iter(fast.encode_batch([text for one in read for text in one], add_special_tokens=False))
    for (row, document), of_document in zip(documents, read, strict=True):
        begin = len(ids)
        for number, (text, column) in enumerate(zip(of_document, texts.columns, strict=True)):
            one = next(encoded)
            before, after = texts.framed(number)
            ids += [*before, *one.ids, *after]
            spans = np.asarray(one.offsets, dtype=np.int64).reshape(-1, 2)
            tokenized = TokenizedText(document, text, column, spans, None, f"{path}, row {row}")
            of_text = made.of(tokenized, number) if channels else {}
            for channel in channels:
                values[channel.name].append(with_specials(of_text[channel.name], channel, len(before), len(after)))
        sizes.append(len(ids) - begin)
    joined = [np.concatenate(values[channel.name]) for channel in channels]
    return np.asarray(ids, dtype=kind).tobytes(), np.asarray(sizes, dtype=np.int64), joined


def begins_word(spans: NDArray[np.int64], starts: Sequence[int]) -> NDArray[np.int64]:
    """int64 [T]: 1 for each token with the characters `spans` [T, 2] that begins a word, 0 inside a word.

    A token begins a word when it is the first that reaches the word's first character; a token that spans the beginning
    of a word begins it too.
    """
    # the last word that begins before a token's end
    words = np.searchsorted(np.asarray(starts, dtype=np.int64), spans[:, 1] - 1, side="right")
    begins = np.ones(len(spans), dtype=np.int64)
    begins[1:] = words[1:] != words[:-1]
    return begins


def with_specials(values: NDArray[Any], channel: Channel, before: int, after: int) -> NDArray[Any]:
    """`values` [T, *shape] of a text, and those of the special tokens before and after it."""
    padding = np.full((before + len(values) + after, *channel.shape), channel.padding, dtype=channel.kind)
    padding[before : before + len(values)] = values
    at = np.arange(len(padding))
    return with_edges(padding, (at >= before) & (at < before + len(values)), channel)
