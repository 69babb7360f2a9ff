"""Read files of labelled examples as records.

jsonl, csv, tsv, parquet      records of any family, read as text files are (`pipelines.corpora.reading`)
json_document                 one JSON value: SQuAD's articles, a list of records, or a page of FUNSD
conllu                        sentences of CoNLL-U

A record whose fields are missing is yielded as a Problem with its location, so that the caller can drop it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pipelines.corpora.examples.formats import conllu, json_document
from pipelines.corpora.reading import EXAMPLE_FORMATS, file_format, read, read_bytes
from pipelines.corpora.reading.flaws import Flaw, FlawHandler
from pipelines.corpora.reading.lines import lines
from pipelines.corpora.reading.options import ReadOptions
from pipelines.corpora.reading.parts import Part, whole_file
from pipelines.errors import DataError
from pipelines.task_families import Problem

LocatedRecord: TypeAlias = tuple[str, "dict[str, Any] | Problem"]
"""Location of a record (`dev.jsonl:17`), and its fields or why it is invalid."""

UNTYPED = (".csv", ".tsv")
"""Extensions of files in which every value is text, including numbers and lists."""


def example_records(
    name: str, path: Path, fields: Mapping[str, str], on_flaw: FlawHandler, least: int | None = None
) -> Iterator[LocatedRecord]:
    """Read the records of a file; `fields` are the expected fields and their types, in the order of a tsv file.

    A line of a tsv file has exactly these fields, or, if `least` is given, at least so many: missing ones are absent
    from the record, extra ones are ignored. `on_flaw` is called for what cannot be read at all. DataError for a format
    that cannot hold these fields.
    """
    extension, part, options = file_format(path, EXAMPLE_FORMATS), whole_file(name, path), ReadOptions(columns=())
    if extension == ".json":
        for location, record in json_document.read(path, read_bytes(part, on_flaw)):
            yield f"{name}:{location}", record
    elif extension == ".conllu":
        missing = [field for field in fields if field not in conllu.FIELDS]
        if missing:
            raise DataError(f"{path}: a conllu file holds trees ({', '.join(conllu.FIELDS)}) and no {missing[0]!r}")
        numbered = ((int(location[1:]), line) for location, line in lines(part, options, on_flaw))
        for location, record in conllu.read(numbered):
            yield f"{name}:{location}", record
    elif extension == ".tsv":
        listed = [field for field, kind in fields.items() if kind.startswith("list")]
        if listed:
            raise DataError(
                f"{path}: a tsv file cannot hold the lists of {', '.join(listed)}; use jsonl, csv or parquet"
            )
        header = tuple(fields)
        yield from (
            read(part, ReadOptions(header, header), on_flaw)
            if least is None
            else _read_wide_tsv(part, header, least, on_flaw)
        )
    elif extension == ".parquet":
        yield from read(part, ReadOptions(_columns_of(path)), on_flaw)
    else:
        yield from read(part, options, on_flaw)


def _read_wide_tsv(part: Part, fields: tuple[str, ...], least: int, on_flaw: FlawHandler) -> Iterator[LocatedRecord]:
    for location, line in lines(part, ReadOptions(columns=()), on_flaw):
        if line.isspace() and "\t" not in line:
            continue
        values = line.rstrip("\r\n").split("\t")
        if len(values) < least:
            message = f"the line has {len(values)} fields, expected {least} or more: {', '.join(fields)}"
            on_flaw(Flaw("wrong number of fields", part.name, part.path, location, message, line))
            continue
        yield part.name + location, dict(zip(fields, values, strict=False))


def _columns_of(path: Path) -> tuple[str, ...]:
    """Columns of a parquet file; none for a damaged one, which its reader reports."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        return ()
