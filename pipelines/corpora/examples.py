"""Labelled examples from files: a row of the family's columns from every record of jsonl, csv, tsv, parquet or SQuAD's json.

A tsv file has no header: its fields are the family's columns in order. In csv a list is written as JSON.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.corpora.reading import EXAMPLE_FORMATS, Record, file_format, place, records
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily

Example = dict[str, Any]
"""The family's columns."""

_SQUAD = ("context", "question", "answer_texts", "answer_starts")


def read_examples(
    name: str, path: Path, family: TaskFamily, columns: Mapping[str, str], bad: Counter[str] | None = None
) -> Iterator[tuple[Example, str]]:
    """The examples of a file and where they stand; `columns` names the file's columns that are called otherwise.

    DataError as `records`, and for a row that is no example of the family, unless `bad` is given: such rows are then passed
    over and counted there.
    """
    ending = file_format(path, EXAMPLE_FORMATS)
    named = {own: columns.get(own, own) for own in family.columns}
    if ending == ".json":
        if set(_SQUAD) != set(family.columns):
            raise DataError(
                f"{path}: a json file holds questions and answers as SQuAD does; use jsonl for {family.name}"
            )
        found = squad(name, path)
    elif ending == ".tsv":
        if any(kind.startswith("list") for kind in family.columns.values()):
            raise DataError(f"{path}: a tsv file cannot hold the lists of {family.name}; use jsonl, csv or parquet")
        found = records(name, path, tuple(family.columns))
    else:
        found = records(name, path, tuple(named.values()))
    for where, record in found:
        example = {}
        for own, theirs in named.items():
            try:
                example[own] = _READ[family.columns[own]](record[theirs], own in family.target)
            except ValueError as wrong:
                told = f"{place(path, where)}: the column {theirs!r} holds {record[theirs]!r}, expected {wrong}"
                raise DataError(told) from None
        problem = family.problem(example)
        # an example without any words is dropped and counted when texts are cleaned
        if problem and (family.text(example).strip() or any(example[own] is None for own in family.target)):
            if bad is None:
                raise DataError(
                    f"{place(path, where)}: {problem}; mend it, or leave such rows out with 'bad_rows: drop'"
                )
            bad["bad row"] += 1
            continue
        yield example, where


def squad(name: str, path: Path) -> Iterator[Record]:
    """The questions of a file in the form of SQuAD 1.1 or 2.0, by their ids.

    DataError for a file of another form, and for a question without an answer that is not said to be impossible.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        document = json.loads(content)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path}: not readable as JSON: {error}") from None
    try:
        for article in document["data"]:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    answers = [] if asked.get("is_impossible") else asked["answers"]
                    if not answers and not asked.get("is_impossible"):
                        raise DataError(
                            f"{path}:{asked['id']}: the question has no answer; mark it 'is_impossible' if there is none"
                        )
                    yield (
                        f"{name}:{asked['id']}",
                        {
                            "context": paragraph["context"],
                            "question": asked["question"],
                            "answer_texts": [answer["text"] for answer in answers],
                            "answer_starts": [answer["answer_start"] for answer in answers],
                        },
                    )
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not in the form of SQuAD: {type(error).__name__} {error}") from None


def _text(value: Any, answer: bool) -> str | None:
    """Text; an answer may be a number, and is None where there is none."""
    if answer and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    if value is not None and not isinstance(value, str):
        raise ValueError("text")
    return (value or "").strip() or None if answer else value or ""


def _number(value: Any, _: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a number")
    try:
        return float(value)
    except ValueError:
        raise ValueError("a number") from None


def _index(value: Any, _: bool) -> int:
    if isinstance(value, str) and value.strip().isdigit():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ValueError("an index, counted from 0")
    return int(value)


def _list(value: Any, kind: type, meaning: str) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError(f"a list of {meaning}, as JSON") from None
    if not isinstance(value, list) or any(not isinstance(item, kind) or isinstance(item, bool) for item in value):
        raise ValueError(f"a list of {meaning}")
    return value


_READ: dict[str, Callable[[Any, bool], Any]] = {
    "string": _text,
    "double": _number,
    "int64": _index,
    "list<string>": lambda value, _: _list(value, str, "texts"),
    "list<int64>": lambda value, _: _list(value, int, "whole numbers"),
}
"""How a column of each kind is read from what stands in a file. A ValueError says what was expected."""
