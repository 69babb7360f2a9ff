"""Apache Parquet (.parquet): rows numbered from 1, a few megabytes in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pipelines.corpora.reading.flaws import Flaw, FlawHandler, one_line
from pipelines.corpora.reading.options import ReadOptions, Records
from pipelines.corpora.reading.parts import Part
from pipelines.errors import DataError

BATCH_BYTES = 8 * 2**20
MOST_ROWS = 8192
MOST_ROWS_PER_BYTE = 8
"""Rows of one byte of the file. A million equal texts take a few thousand bytes, and so does a billion."""
UNLIMITED = 2**16
"""Rows that any file may have."""


def read_parquet(part: Part, options: ReadOptions, on_flaw: FlawHandler) -> Records:
    """Read the requested columns of a part's row groups.

    Flaws: missing column, damaged file, empty file and far more rows than bytes (all for the file as a whole), damaged
    rows, overlong document.
    """
    import pyarrow as pa

    part.check_unchanged()
    on_file_flaw = on_flaw if part.begin == 0 else lambda _: None
    with _open(part, on_file_flaw) as table:
        if table is None:
            return
        names = table.schema_arrow.names
        for column in options.columns:
            if column not in names:
                text = f"there is no column {column!r}; the columns are {', '.join(map(repr, names))}"
                on_file_flaw(Flaw("missing column", part.name, part.path, "", text))
                return
        meta = table.metadata
        if meta.num_rows > max(UNLIMITED, MOST_ROWS_PER_BYTE * part.bytes):
            text = (
                f"{meta.num_rows:,} rows in {part.bytes:,} bytes: the same few values again and again; remove the "
                "file, or write each text once"
            )
            on_file_flaw(Flaw("decompression bomb", part.name, part.path, "", text))
            return
        groups = range(part.begin, meta.num_row_groups if part.end is None else part.end)
        before = sum(meta.row_group(group).num_rows for group in range(part.begin))
        for group in groups:
            size = meta.row_group(group)
            rows = max(1, min(MOST_ROWS, BATCH_BYTES * size.num_rows // max(1, size.total_byte_size)))
            number = before
            try:
                batches = table.iter_batches(
                    batch_size=rows, row_groups=[group], columns=list(dict.fromkeys(options.columns))
                )
                for batch in _bounded(batches, options.longest):
                    if batch.nbytes > options.longest:
                        number += 1
                        text = f"the row has {batch.nbytes:,} bytes, more than longest_document ({options.longest:,})"
                        on_flaw(Flaw("overlong document", part.name, part.path, f":{number}", text))
                        continue
                    for record in batch.to_pylist():
                        number += 1
                        yield f"{part.name}:{number}", record
            except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
                text = f"this row group cannot be read further: {one_line(error)}; write the file again"
                on_flaw(Flaw("damaged rows", part.name, part.path, f":{number + 1}", text))
            before += size.num_rows
    part.check_unchanged()


def _bounded(batches: Iterable[Any], longest: int) -> Iterator[Any]:
    """Split batches of more than `longest` bytes into rows, because Python objects take far more memory."""
    import pyarrow as pa

    for batch in batches:
        columns = [
            column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column for column in batch.columns
        ]
        plain = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
        if plain.nbytes <= longest:
            yield plain
        else:
            yield from (plain.slice(row, 1) for row in range(plain.num_rows))


def is_string_column(part: Part, column: str, on_flaw: FlawHandler) -> bool:
    """Whether a column, if the file has it, is of a string type; if not, call `on_flaw`."""
    import pyarrow as pa

    with _open(part, lambda _: None) as table:
        if table is None or column not in table.schema_arrow.names:
            return True  # the reader reports it
        kind = table.schema_arrow.field(column).type
    inside = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(inside) or pa.types.is_large_string(inside) or pa.types.is_string_view(inside):
        return True
    if pa.types.is_null(inside):
        return True
    if part.begin == 0:
        text = (
            f"the column {column!r} is of type {kind}, expected text (string); name another column, or write it as text"
        )
        on_flaw(Flaw("not text", part.name, part.path, "", text))
    return False


def split_by_row_groups(part: Part, size: int) -> list[Part]:
    """Split a whole file into parts of about `size` decompressed bytes each; unsplit when it cannot be opened."""
    with _open(part, lambda _: None) as table:
        if table is None:
            return [part]
        sizes = [table.metadata.row_group(number).total_byte_size for number in range(table.metadata.num_row_groups)]
    begins, filled = [0], 0
    for number, bytes_of_group in enumerate(sizes):
        if filled and filled + bytes_of_group > size:
            begins.append(number)
            filled = 0
        filled += bytes_of_group
    if len(begins) == 1:
        return [part]
    ends = [*begins[1:], len(sizes)]
    return [replace(part, begin=begin, end=end) for begin, end in zip(begins, ends, strict=True)]


@contextmanager
def _open(part: Part, on_flaw: FlawHandler) -> Iterator[Any]:
    """Open the file as `pyarrow.parquet.ParquetFile`; None, after a call of `on_flaw`, for an invalid one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if part.bytes == 0:
        on_flaw(Flaw("empty file", part.name, part.path, "", "the file is empty; fetch it again or remove it"))
        yield None
        return
    try:
        table = pq.ParquetFile(part.path, buffer_size=1 << 20, pre_buffer=False)
    except PermissionError as error:
        raise DataError(
            f"{part.path}: cannot be read: {os.strerror(error.errno or 0)}; check its permissions"
        ) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        text = (
            f"not readable as Parquet: {one_line(error)}; it is of another format or truncated: fetch or write it again"
        )
        on_flaw(Flaw("damaged file", part.name, part.path, "", text))
        yield None
        return
    with table:
        yield table
