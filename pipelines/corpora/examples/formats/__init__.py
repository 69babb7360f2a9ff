"""Files of labelled examples as records, one format a file.

jsonl, csv, tsv, parquet      records of any family, read as text files are (`pipelines.corpora.reading`)
json_document                 one JSON value: SQuAD's articles, a list of records, or a page of FUNSD
conllu                        sentences of CoNLL-U

A record whose fields cannot be found is told as a Problem in its place, so that who allows it can leave it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pipelines.corpora.examples.formats import conllu, json_document
from pipelines.corpora.reading import EXAMPLE_FORMATS, content, file_format, read
from pipelines.corpora.reading.flaws import Flaw, Flawed
from pipelines.corpora.reading.lines import lines
from pipelines.corpora.reading.options import ReadOptions
from pipelines.corpora.reading.parts import Part, whole
from pipelines.errors import DataError
from pipelines.task_families import Problem

Found: TypeAlias = tuple[str, "dict[str, Any] | Problem"]
"""Where a record stands (`dev.jsonl:17`), and its fields, or why it has none."""

UNTYPED = (".csv", ".tsv")
"""Endings of files in which all is text, numbers and lists too."""


def example_records(
    name: str, path: Path, fields: Mapping[str, str], flawed: Flawed, least: int | None = None
) -> Iterator[Found]:
    """The records of a file; `fields` are what they should hold, in the order of a tsv file.

    A line of a tsv file has exactly these fields, or, where `least` is given, at least so many: those that are missing are
    no field of the record, and further ones are not read. `flawed` hears of what cannot be read at all. DataError for a
    format that cannot hold these fields.
    """
    ending, part, options = file_format(path, EXAMPLE_FORMATS), whole(name, path), ReadOptions(columns=())
    if ending == ".json":
        for place, found in json_document.read(path, content(part, flawed)):
            yield f"{name}:{place}", found
    elif ending == ".conllu":
        missing = [field for field in fields if field not in conllu.FIELDS]
        if missing:
            raise DataError(f"{path}: a conllu file holds trees ({', '.join(conllu.FIELDS)}) and no {missing[0]!r}")
        numbered = ((int(place[1:]), line) for place, line in lines(part, options, flawed))
        for place, found in conllu.read(numbered):
            yield f"{name}:{place}", found
    elif ending == ".tsv":
        listed = [field for field, kind in fields.items() if kind.startswith("list")]
        if listed:
            told = f"a tsv file cannot hold the lists of {', '.join(listed)}; use jsonl, csv or parquet"
            raise DataError(f"{path}: {told}")
        header = tuple(fields)
        yield from (
            read(part, ReadOptions(header, header), flawed) if least is None else _wide(part, header, least, flawed)
        )
    elif ending == ".parquet":
        yield from read(part, ReadOptions(_columns_of(path)), flawed)
    else:
        yield from read(part, options, flawed)


def _wide(part: Part, fields: tuple[str, ...], least: int, flawed: Flawed) -> Iterator[Found]:
    for place, line in lines(part, ReadOptions(columns=()), flawed):
        if line.isspace() and "\t" not in line:
            continue
        values = line.rstrip("\r\n").split("\t")
        if len(values) < least:
            told = f"the line has {len(values)} fields, expected {least} or more: {', '.join(fields)}"
            flawed(Flaw("wrong number of fields", part.name, part.path, place, told, line))
            continue
        yield part.name + place, dict(zip(fields, values, strict=False))


def _columns_of(path: Path) -> tuple[str, ...]:
    """All columns of a parquet file; none of a damaged one, which its reader complains of."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        return ()
