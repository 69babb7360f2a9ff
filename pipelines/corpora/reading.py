"""Text files as rows: txt, jsonl, csv (each also with .gz) and parquet; every mistake names its file and its place.

A txt file holds documents separated by blank lines, as the input of BERT's own pre-training script: a file of one text
a line needs blank lines between them, or to become jsonl or csv.
"""

from __future__ import annotations

import csv
import glob
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.errors import DataError

FORMATS = (".txt", ".jsonl", ".csv", ".parquet")

Record = tuple[str, dict[str, Any]]
"""Where the record stands (`reviews.jsonl:17`), and its columns."""


def find_files(path: str, root: Path) -> dict[str, Path]:
    """The files a path, a folder or a glob means, by the name they have in `source` columns, sorted.

    DataError for a path that does not exist, a glob or folder without readable files, an unknown ending.
    """
    where = Path(path).expanduser()
    full = where if where.is_absolute() else root / where
    if full.is_file():
        _format(full)
        return {full.name: full}
    if full.is_dir():
        found = [file for file in full.rglob("*") if file.is_file() and _is_readable(file, full)]
        base = full
    else:
        found = [Path(file) for file in glob.glob(str(full), recursive=True)]
        found = [file for file in found if file.is_file()]
        base = Path(os.path.dirname(re.split(r"[*?\[]", str(full))[0]))
        if not found and not glob.has_magic(path):
            raise DataError(f"{full}: there is no such file or folder; check the path in params.yaml")
        for file in found:
            _format(file)
    if not found:
        raise DataError(f"{full}: no file with one of the endings {', '.join(FORMATS)} (or .gz of these) is there")
    return {file.relative_to(base).as_posix() if base in file.parents else file.name: file for file in sorted(found)}


def read_texts(name: str, path: Path, text: str) -> Iterator[tuple[str, str]]:
    """The `text, source` rows of a file. DataError as `records`, and for a text that is not a string."""
    for where, record in records(name, path, (text,)):
        yield _string(record, text, path, where), where


def read_examples(name: str, path: Path, text: str, label: str) -> Iterator[tuple[str, str, str]]:
    """The `text, label, source` rows of a labelled file; labels become strings. DataError for an empty label."""
    if _format(path) == ".txt":
        raise DataError(f"{path}: a txt file cannot hold labels; use jsonl, csv or parquet")
    for where, record in records(name, path, (text, label)):
        value = record[label]
        if value is None or str(value).strip() == "" or isinstance(value, dict | list):
            raise DataError(
                f"{_place(path, where)}: the label column {label!r} holds {value!r}; every example needs a label"
            )
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        yield _string(record, text, path, where), str(value).strip(), where


def records(name: str, path: Path, columns: tuple[str, ...]) -> Iterator[Record]:
    """The records of a file with at least these columns.

    DataError for a missing column, a malformed line, bytes that are not UTF-8, a file that is cut short.
    """
    ending = _format(path)
    if ending == ".parquet":
        yield from _parquet(name, path, columns)
    elif ending == ".jsonl":
        yield from _jsonl(name, path, columns)
    elif ending == ".csv":
        yield from _csv(name, path, columns)
    else:
        yield from _txt(name, path, columns)


def _txt(name: str, path: Path, columns: tuple[str, ...]) -> Iterator[Record]:
    block: list[str] = []
    first = 0
    for number, line in _lines(path):
        if line.strip():
            first = first if block else number
            block.append(line)
        elif block:
            yield f"{name}:{first}", {columns[0]: "".join(block)}
            block = []
    if block:
        yield f"{name}:{first}", {columns[0]: "".join(block)}


def _jsonl(name: str, path: Path, columns: tuple[str, ...]) -> Iterator[Record]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}:{number}: not a JSON object: {error}; the line begins {line[:60]!r}") from None
        if not isinstance(record, dict):
            raise DataError(f"{path}:{number}: expected a JSON object, found {type(record).__name__}")
        _require(columns, record, f"{path}:{number}")
        yield f"{name}:{number}", record


def _csv(name: str, path: Path, columns: tuple[str, ...]) -> Iterator[Record]:
    csv.field_size_limit(2**31 - 1)
    reader = csv.DictReader((line for _, line in _lines(path)), strict=True)
    try:
        _require(columns, reader.fieldnames or [], f"{path}:1")
        for record in reader:
            if None in record or None in record.values():
                raise DataError(f"{path}:{reader.line_num}: the row has not as many fields as the header")
            yield f"{name}:{reader.line_num}", record
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: not readable as CSV: {error}") from None


def _parquet(name: str, path: Path, columns: tuple[str, ...]) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: not readable as Parquet: {error}") from None
    with table:
        _require(columns, table.schema_arrow.names, str(path))
        number = 0
        for batch in table.iter_batches(columns=list(dict.fromkeys(columns))):
            for record in batch.to_pylist():
                number += 1
                yield f"{name}:{number}", record


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of UTF-8. DataError names the byte that is none, counted in the unpacked file."""
    position = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    text = line.decode()
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{path}: byte {position + error.start} (line {number}) is not UTF-8; save the file as UTF-8"
                    ) from None
                position += len(line)
                yield number, text.removeprefix("\ufeff") if number == 1 else text
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip file is damaged or cut short after {position} bytes: {error}") from None


def _require(columns: tuple[str, ...], present: Any, where: str) -> None:
    for column in columns:
        if column not in present:
            raise DataError(f"{where}: there is no column {column!r}; the columns are {', '.join(map(repr, present))}")


def _string(record: dict[str, Any], column: str, path: Path, where: str) -> str:
    value = record[column]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{_place(path, where)}: the column {column!r} holds {value!r}, expected text")
    return value


def _place(path: Path, where: str) -> str:
    return f"{path}:{where.rpartition(':')[2]}"


def _format(path: Path) -> str:
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending not in FORMATS or (ending == ".parquet" and path.suffix == ".gz"):
        raise DataError(f"{path}: unknown ending; known: {', '.join(FORMATS)}, and .gz of txt, jsonl and csv")
    return ending


def _is_readable(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return not hidden and Path(file.name.removesuffix(".gz")).suffix.lower() in FORMATS
