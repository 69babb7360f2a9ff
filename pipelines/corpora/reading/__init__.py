"""Read txt, jsonl, csv, tsv and parquet files as records; every error names its file and the location in it.

    find_local(path)  ─▶  parts_of(name, file)  ─▶  read(part, options, on_flaw)  ─▶  records and their locations
    finding.py            parts.py                  one module per format             options.py, flaws.py
    remote.py: remote files are downloaded first

All formats but parquet may be compressed (`.gz`, `.zst`; opening.py). Memory is bounded by the longest accepted record,
whatever the size of a line, a file or a folder. No record is skipped silently: a reader passes every record that it
cannot use to `on_flaw`, which raises or counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.corpora.reading.csv import read_csv
from pipelines.corpora.reading.extensions import EXAMPLE_FORMATS, FORMATS, file_format, is_compressed
from pipelines.corpora.reading.flaws import Flaw, FlawHandler, refuse
from pipelines.corpora.reading.jsonl import read_jsonl
from pipelines.corpora.reading.opening import DamagedFileError, damaged_file_flaw, open_part
from pipelines.corpora.reading.options import ReadOptions, Record, Records
from pipelines.corpora.reading.parquet import is_string_column, read_parquet, split_by_row_groups
from pipelines.corpora.reading.parts import PART_BYTES, Part, split_by_bytes, whole_file
from pipelines.corpora.reading.source_files import find_files
from pipelines.corpora.reading.text import read_text
from pipelines.corpora.reading.tsv import read_tsv

__all__ = [
    "EXAMPLE_FORMATS",
    "FORMATS",
    "Record",
    "content",
    "file_format",
    "find_files",
    "location",
    "parts_of",
    "read",
    "read_text_records",
    "read_texts",
    "records",
]

_READERS: dict[str, Callable[[Part, ReadOptions, FlawHandler], Records]] = {
    ".txt": read_text,
    ".jsonl": read_jsonl,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".parquet": read_parquet,
}


def parts_of(name: str, path: Path, options: ReadOptions, size: int = PART_BYTES) -> list[Part]:
    """Split a file into units of work, in order. DataError for an unknown file extension and for a missing file."""
    part = whole_file(name, path)
    extension = "" if options.lines else file_format(path, FORMATS)
    if extension == ".parquet":
        return split_by_row_groups(part, size)
    by_line = options.lines or extension in (".jsonl", ".tsv")
    return split_by_bytes(part, size) if by_line and not is_compressed(path) else [part]


def read(part: Part, options: ReadOptions, on_flaw: FlawHandler = refuse) -> Records:
    """Read the records of a part; `on_flaw` is called with each flaw.

    DataError for a file that cannot be accessed or that changes meanwhile, and for a flaw that `on_flaw` refuses.
    """
    reader = read_text if options.lines else _READERS[file_format(part.path, FORMATS)]
    return reader(part, options, on_flaw)


def read_texts(part: Part, options: ReadOptions, on_flaw: FlawHandler = refuse) -> Iterator[tuple[str, str]]:
    """Read the texts of a part, from the first of the columns, with their locations; a null is an empty text.

    Flaws: those of `read`, and a value that is not text.
    """
    return ((text, where) for text, where, _ in read_text_records(part, options, on_flaw))


def read_text_records(
    part: Part, options: ReadOptions, on_flaw: FlawHandler = refuse
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Read the texts of a part as `read_texts` does, with their locations and all requested columns of the record."""
    column = options.columns[0]
    if (
        not options.lines
        and file_format(part.path, FORMATS) == ".parquet"
        and not is_string_column(part, column, on_flaw)
    ):
        return
    for where, record in read(part, options, on_flaw):
        value: Any = record[column]
        if isinstance(value, str):
            yield value, where, record
        elif value is None:
            yield "", where, record
        else:
            message = f"the column {column!r} holds {value!r:.100}, expected text"
            on_flaw(Flaw("not text", part.name, part.path, where[len(part.name) :], message, repr(value)[:100]))


def records(name: str, path: Path, columns: tuple[str, ...]) -> Records:
    """Read a whole file whose records have at least these columns; in a tsv file, without header, these are its fields.

    DataError for a missing column, a malformed record, bytes that are not UTF-8, a truncated file.
    """
    header = columns if file_format(path, FORMATS) == ".tsv" else ()
    return read(whole_file(name, path), ReadOptions(columns=columns, header=header))


def read_bytes(part: Part, on_flaw: FlawHandler) -> bytes:
    """Read a whole file, decompressed, for formats that hold a single value; empty when `on_flaw` was called.

    Flaws: those of `open_part`, damaged file.
    """
    with open_part(part, on_flaw) as file:
        try:
            return file.read() if file is not None else b""
        except DamagedFileError as damage:
            on_flaw(damaged_file_flaw(part, 0, damage))
    return b""


def location(path: Path, where: str) -> str:
    """`path:17`: the path and the last part of `where`, which is a line or an id."""
    return f"{path}:{where.rpartition(':')[2]}"
