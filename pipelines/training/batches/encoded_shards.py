"""Tokenise ranges of tables as independent units of work, so that several processes share a corpus.

units/000003/tokens.bin        token ids of the unit, an end of document after each document
units/000003/lengths.bin       int64: number of tokens of each document, its end included
units/000003/channel.*.bin     the values of each channel of the segmentation and the annotations
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.corpora.shards.folders import table_files
from pipelines.errors import DataError
from pipelines.training.batches.encoded_documents import TEXT, DocumentChannels, DocumentTexts, encode_documents
from pipelines.training.batches.token_channels import file_of, kind_of
from pipelines.training.batches.word_cache import WordCache

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer as Fast

    from pipelines.task_families import Row

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
    """Approximate size of the column `text` in bytes."""
    columns: tuple[str, ...] = (TEXT,)
    """Columns whose texts are read."""

    def texts(self) -> Iterator[list[str]]:
        """The texts of each row in order, a bounded number of characters at a time. Raises DataError as `documents`."""
        import pyarrow.parquet as parquet

        held: list[str] = []
        size = 0
        with parquet.ParquetFile(self.path) as file:
            self._check_columns(self.columns, file.schema_arrow.names)
            for batch in file.iter_batches(batch_size=1024, row_groups=self.groups, columns=[*self.columns]):
                texts = [batch.column(column).to_pylist() for column in self.columns]
                for text in itertools.chain.from_iterable(zip(*texts, strict=True)):
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
            self._check_columns(columns, present)
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

    def _check_columns(self, columns: Sequence[str], present: Sequence[str]) -> None:
        if missing := sorted(set(columns) - set(present)):
            raise DataError(
                f"{self.path}: there is no column {missing[0]!r}, which an annotation or the texts of the stage name, "
                f"only {', '.join(present)}; choose a corpus that has it, or leave them out"
            )


def row_group_ranges(
    tables: Sequence[Path], columns: Mapping[Path, tuple[str, ...]] | None = None
) -> list[RowGroupRange]:
    """Divide `tables` into ranges. Ranges of several tables alternate, so that every prefix holds the same share of
    each. `columns` names the columns to read of tables of which not `text` alone is read.

    Raises DataError when a file has no text column.
    """
    ordered = []
    for number, table in enumerate(tables):
        read = (columns or {}).get(table, (TEXT,))
        ranges = [replace(one, columns=read) for file in table_files(table) for one in _ranges_of_file(file)]
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
    kind: str
    """dtype of the ids."""
    texts: DocumentTexts
    made: DocumentChannels

    def __call__(self, folder: Path) -> None:
        encoder = _encoder(self.tokenizer, self.texts.end, self.kind)
        encoder.begin_unit()
        channels = self.made.channels
        with ExitStack() as files:
            tokens, lengths, *alongside = (
                files.enter_context((folder / name).open("wb"))
                for name in (TOKENS, LENGTHS, *(file_of(channel) for channel in channels))
            )
            if not channels and self.texts.columns == (TEXT,):
                for texts in self.source.texts():
                    ids, sizes = encoder.encode(texts)
                    tokens.write(ids)
                    lengths.write(sizes.tobytes())
                return
            required = [*self.texts.columns, *self.made.required_columns]
            for documents in self.source.documents(required, self.made.optional_columns):
                ids, sizes, values = encode_documents(
                    encoder.fast, self.kind, documents, str(self.source.path), self.texts, self.made
                )
                tokens.write(ids)
                lengths.write(sizes.tobytes())
                for file, channel, of_channel in zip(alongside, channels, values, strict=True):
                    file.write(of_channel.astype(kind_of(channel)).tobytes())


class Encoder:
    """A tokenizer over many texts, each followed by the end of a document."""

    def __init__(self, fast: Fast, end: int, kind: str) -> None:
        self.fast, self._kind = fast, np.dtype(kind)
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

    def _encode_whole(self, texts: Sequence[str]) -> list[bytes]:
        encoded = self.fast.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.asarray(one.ids, dtype=self._kind).tobytes() for one in encoded]


@lru_cache(maxsize=1)
def _encoder(tokenizer: Path, end: int, kind: str) -> Encoder:
    """The encoder of this process, shared by all its units so that the word cache is reused."""
    from tokenizers import Tokenizer as Fast

    return Encoder(Fast.from_file(str(tokenizer)), end, kind)


def clear_word_cache() -> None:
    """Free the memory of `_encoder`, where units were encoded in this process."""
    _encoder.cache_clear()


def read_encoded(folder: Path, name: str, kind: Any) -> NDArray[Any]:
    """A file of a finished unit, memory-mapped; empty where the unit has no text."""
    if (folder / name).stat().st_size == 0:
        return np.empty(0, dtype=kind)
    return np.asarray(np.memmap(folder / name, dtype=kind, mode="r"))
