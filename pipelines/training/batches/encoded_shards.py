"""Tokenise ranges of tables as independent units of work, so that several processes share a corpus.

units/000003/tokens.bin        token ids of the unit, an end of document after each document
units/000003/lengths.bin       int64: number of tokens of each document, its end included
units/000003/channel.*.bin     the values of each channel of the segmentation and the annotations
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.corpora.shards.folders import table_files
from pipelines.errors import DataError
from pipelines.task_families.tokenized import TokenizedText, annotated, with_edges
from pipelines.training.batches.token_channels import file_of, kind_of
from pipelines.training.batches.word_cache import WordCache
from pipelines.vocabulary import WORD_STARTS, Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer as Fast

    from pipelines.parts.annotations import Annotation
    from pipelines.parts.segmentations import Segmentation
    from pipelines.task_families import Row

TEXT = "text"
"""Name of the column that is read."""
RANGE_BYTES = 8 * 2**20
"""Bytes of text in a unit of work, which is at least one row group."""
CHARACTERS = 2**20
"""Texts are encoded together once they have this many characters."""
CHECKED = 16
"""Texts of a unit that are also encoded whole, to check that encoding word by word gives the same ids."""
TOKENS, LENGTHS = "tokens.bin", "lengths.bin"


@dataclass(frozen=True)
class RowGroupRange:
    """Consecutive row groups of a Parquet file."""

    path: Path
    groups: tuple[int, ...]
    bytes: int
    """Approximate size of the text in bytes."""

    def texts(self) -> Iterator[list[str]]:
        """The texts in order, a bounded number of characters at a time."""
        import pyarrow.parquet as parquet

        held: list[str] = []
        size = 0
        with parquet.ParquetFile(self.path) as file:
            for batch in file.iter_batches(batch_size=1024, row_groups=self.groups, columns=[TEXT]):
                for text in batch.column(0).to_pylist():
                    held.append(text)
                    size += len(text)
                    if size >= CHARACTERS:
                        yield held
                        held, size = [], 0
        if held:
            yield held

    def documents(self, columns: Sequence[str], optional: Sequence[str] = ()) -> Iterator[list[tuple[int, Row]]]:
        """As `texts`, the number of each row in its file, from 0, and its text and values of `columns`.

        Raises DataError when the file lacks one of the columns, unless it is `optional`.
        """
        import pyarrow.parquet as parquet

        held: list[tuple[int, Row]] = []
        size = 0
        with parquet.ParquetFile(self.path) as file:
            present = file.schema_arrow.names
            if missing := sorted(set(columns) - set(present)):
                raise DataError(
                    f"{self.path}: there is no column {missing[0]!r}, which an annotation of the stage reads, only "
                    f"{', '.join(present)}; choose a corpus that has it, or leave the annotation out"
                )
            chosen = list(dict.fromkeys([TEXT, *columns, *(name for name in optional if name in present)]))
            number = sum(file.metadata.row_group(group).num_rows for group in range(self.groups[0]))
            for batch in file.iter_batches(batch_size=1024, row_groups=self.groups, columns=chosen):
                for row in batch.select(chosen).to_pylist():
                    held.append((number, row))
                    number += 1
                    size += len(row[TEXT])
                    if size >= CHARACTERS:
                        yield held
                        held, size = [], 0
        if held:
            yield held


def row_group_ranges(tables: Sequence[Path]) -> list[RowGroupRange]:
    """Divide `tables` into ranges. Ranges of several tables alternate, so that every prefix holds the same share of
    each.

    Raises DataError when a file has no text column.
    """
    ordered = []
    for number, table in enumerate(tables):
        ranges = [one for file in table_files(table) for one in _ranges_of_file(file)]
        ordered += [((at + 0.5) / len(ranges), number, one) for at, one in enumerate(ranges)]
    return [one for _, _, one in sorted(ordered, key=lambda item: item[:2])]


def _ranges_of_file(path: Path) -> Iterator[RowGroupRange]:
    import pyarrow.parquet as parquet

    metadata = parquet.read_metadata(path)
    columns = [metadata.schema.column(number).path for number in range(len(metadata.schema))]
    if TEXT not in columns:
        raise DataError(
            f"{path}: there is no column {TEXT!r}, only {', '.join(columns)}; run the step that writes this table again"
        )
    groups: list[int] = []
    size = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        size += metadata.row_group(group).column(columns.index(TEXT)).total_uncompressed_size
        if size >= RANGE_BYTES:
            yield RowGroupRange(path, tuple(groups), size)
            groups, size = [], 0
    if groups:
        yield RowGroupRange(path, tuple(groups), size)


@dataclass(frozen=True)
class EncodingUnit:
    """A unit of work that tokenises one range of row groups into a folder."""

    name: str
    source: RowGroupRange
    tokenizer: Path
    """A tokenizer.json that neither truncates nor pads."""
    end: int
    """Id of the end-of-document token."""
    kind: str
    """dtype of the ids."""
    segmentation: Segmentation | None
    annotations: tuple[Annotation, ...] = ()

    def __call__(self, folder: Path) -> None:
        encoder = _encoder(self.tokenizer, self.end, self.kind)
        encoder.begin_unit()
        channels = channels_of(self.segmentation, self.annotations)
        with ExitStack() as files:
            tokens, lengths, *alongside = (
                files.enter_context((folder / name).open("wb"))
                for name in (TOKENS, LENGTHS, *(file_of(channel) for channel in channels))
            )
            if not channels:
                for texts in self.source.texts():
                    ids, sizes = encoder.encode(texts)
                    tokens.write(ids)
                    lengths.write(sizes.tobytes())
                return
            required = sorted({name for one in self.annotations for name in one.columns})
            optional = sorted({name for one in self.annotations for name in one.optional_columns})
            for documents in self.source.documents(required, optional):
                ids, sizes, values = encoder.encode_with_channels(
                    documents, str(self.source.path), self.segmentation, self.annotations
                )
                tokens.write(ids)
                lengths.write(sizes.tobytes())
                for file, channel, of_channel in zip(alongside, channels, values, strict=True):
                    file.write(of_channel.astype(kind_of(channel)).tobytes())


class Encoder:
    """A tokenizer over many texts, each followed by the end of a document."""

    def __init__(self, fast: Fast, end: int, kind: str) -> None:
        self._fast, self._kind = fast, np.dtype(kind)
        self._end = np.asarray([end], dtype=self._kind).tobytes()
        self._words = WordCache.of(fast, self._kind.type)
        self._by_word = False

    def begin_unit(self) -> None:
        """Reset the state before each unit, so that its result depends on the unit alone."""
        self._by_word = self._words is not None
        self._checked = False

    def encode(self, texts: Sequence[str]) -> tuple[bytes, NDArray[np.int64]]:
        """The concatenated ids of `texts`, and the number of tokens of each, with the end of document."""
        encoded: list[bytes | None] = [None] * len(texts)
        if self._words is not None and self._by_word:
            encoded = self._words.encode(texts)
            if not self._checked:
                # a tokenizer from elsewhere may match its description and still differ
                whole = self._encode_whole(texts[:CHECKED])
                self._by_word = all(ids is None or ids == one for ids, one in zip(encoded, whole, strict=False))
                self._checked = True
                encoded = encoded if self._by_word else [None] * len(texts)
        remaining = [at for at, ids in enumerate(encoded) if ids is None]
        for at, ids in zip(remaining, self._encode_whole([texts[at] for at in remaining]), strict=True):
            encoded[at] = ids
        documents = [ids for ids in encoded if ids is not None]
        sizes = np.asarray([len(ids) for ids in documents], dtype=np.int64) // self._kind.itemsize + 1
        return self._end.join([*documents, b""]), sizes

    def encode_with_channels(
        self,
        documents: Sequence[tuple[int, Row]],
        path: str,
        segmentation: Segmentation | None,
        annotations: Sequence[Annotation],
    ) -> tuple[bytes, NDArray[np.int64], list[NDArray[np.int64]]]:
        """The same as `encode`, and the values [N, *shape] of each of `channels_of`, ends of documents included.

        `documents` are rows of the file `path` with their numbers. Raises DataError naming a row that cannot be
        annotated.
        """
        channels = channels_of(segmentation, annotations)
        values: dict[str, list[NDArray[np.int64]]] = {channel.name: [] for channel in channels}
        encoded, sizes = [], []
        texts = [document[TEXT] for _, document in documents]
        batch = self._fast.encode_batch(texts, add_special_tokens=False)
        for (number, document), text, one in zip(documents, texts, batch, strict=True):
            encoded.append(np.asarray(one.ids, dtype=self._kind).tobytes())
            sizes.append(len(one.ids) + 1)
            spans = np.asarray(one.offsets, dtype=np.int64).reshape(-1, 2)
            made = annotated(annotations, TokenizedText(document, text, TEXT, spans, None, f"{path}, row {number}"))
            if segmentation is not None:
                made[WORD_STARTS.name] = begins_word(spans, segmentation.word_starts(text))
            for channel in channels:
                values[channel.name].append(with_end(made[channel.name], channel))
        joined = [np.concatenate(values[channel.name]) for channel in channels]
        return self._end.join([*encoded, b""]), np.asarray(sizes, dtype=np.int64), joined

    def _encode_whole(self, texts: Sequence[str]) -> list[bytes]:
        encoded = self._fast.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.asarray(one.ids, dtype=self._kind).tobytes() for one in encoded]


@lru_cache(maxsize=1)
def _encoder(tokenizer: Path, end: int, kind: str) -> Encoder:
    """The encoder of this process, shared by all its units so that the word cache is reused."""
    from tokenizers import Tokenizer as Fast

    return Encoder(Fast.from_file(str(tokenizer)), end, kind)


def clear_word_cache() -> None:
    """Free the memory of `_encoder`, where units were encoded in this process."""
    _encoder.cache_clear()


def channels_of(segmentation: Segmentation | None, annotations: Sequence[Annotation]) -> list[Channel]:
    """The channels of a stream, in the order in which they are made."""
    words = [WORD_STARTS] if segmentation is not None else []
    return [*words, *(channel for one in annotations for channel in one.channels)]


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


def with_end(values: NDArray[np.int64], channel: Channel) -> NDArray[np.int64]:
    """`values` [T, *shape] of a document, and that of the end of document after them."""
    return with_edges(
        np.concatenate([values, np.full((1, *channel.shape), channel.padding)]),
        np.arange(len(values) + 1) < len(values),
        channel,
    )


def read_encoded(folder: Path, name: str, kind: Any) -> NDArray[Any]:
    """A file of a finished unit, memory-mapped; empty where the unit has no text."""
    if (folder / name).stat().st_size == 0:
        return np.empty(0, dtype=kind)
    return np.asarray(np.memmap(folder / name, dtype=kind, mode="r"))
