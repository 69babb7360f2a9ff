"""Read labelled examples from files of any format; an example has the columns of its task family.

A tsv file has no header: its fields are the family's in order. In csv, lists are written as JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pipelines.corpora.examples.formats import UNTYPED, example_records
from pipelines.corpora.examples.header import is_header
from pipelines.corpora.examples.values import EMPTY, READ, answer_text, class_label
from pipelines.corpora.reading import EXAMPLE_FORMATS, file_format, location
from pipelines.corpora.reading.flaws import Flaw, refuse
from pipelines.corpora.settings.task import has_classes
from pipelines.corpora.shards.tally import Tally
from pipelines.errors import DataError
from pipelines.task_families import Lookup, Problem, Row, TaskFamily

Example = dict[str, Any]
"""Column of the family → value."""

_EXCERPT = 300
_ADVICE = "fix it, or drop such rows with 'bad_rows: drop'"


class ExampleReader:
    """Reads the files of one part of a task."""

    def __init__(
        self,
        family: TaskFamily,
        tally: Tally,
        *,
        columns: Mapping[str, str] | None = None,
        tables: Mapping[str, Lookup] | None = None,
        part: str = "",
        drop_bad_rows: bool = False,
    ) -> None:
        """`columns` maps the family's fields to the files' names where they differ; `tables` are the family's side
        tables.

        `tally` counts, by `part` and reason, what is omitted from examples and, with `drop_bad_rows`, the dropped rows.
        """
        self._family, self._tables, self._tally, self._part = family, tables or {}, tally, part
        self._drop_bad_rows = drop_bad_rows
        self._kinds = family.fields or family.columns
        self._named = {own: (columns or {}).get(own, own) for own in self._kinds}
        self.value_counts: Counter[str] = Counter()
        """Reason → number of bad values in dropped rows."""
        self._ids: dict[str, tuple[str, bytes]] = {}

    def read(self, name: str, path: Path) -> Iterator[tuple[Example, str]]:
        """Read the examples of a file with their locations.

        DataError for an unreadable file, and for an invalid row with its file, row and field.
        """
        extension = file_format(path, EXAMPLE_FORMATS)
        untyped = extension in UNTYPED
        fields = {own if untyped else self._named[own]: kind for own, kind in self._kinds.items()}
        for where, record in example_records(name, path, fields, self._on_flaw):
            if isinstance(record, Problem):
                example: Example | Problem = record
            else:
                header = self._header_problem(record) if extension == ".tsv" and where == f"{name}:1" else None
                example = header or self._example(record, untyped, where)
            if not isinstance(example, Problem):
                yield example, where
            elif not self._drop_bad_rows:
                raise DataError(f"{location(path, where)}: {example}; {_ADVICE}")
            else:
                shown = record if isinstance(record, Problem) else json.dumps(record, ensure_ascii=False, default=str)
                self.value_counts[self._reason(example.reason)] += example.value_count
                self._tally.drop(self._reason(example.reason), f"{example} | {shown}"[:_EXCERPT], where)

    def _on_flaw(self, flaw: Flaw) -> None:
        """An unreadable row is a bad row; an unreadable file is always an error."""
        if self._drop_bad_rows and flaw.location:
            self._tally.drop(self._reason(flaw.reason), flaw.excerpt, flaw.where)
        else:
            refuse(flaw, f"; {_ADVICE}" if flaw.location else "")

    def _header_problem(self, record: Row) -> Problem | None:
        """The problem that the first record of a file without header is one."""
        if not is_header(record, self._kinds):
            return None
        names = ", ".join(map(repr, record.values()))
        return Problem("header", f"the row holds names of columns ({names}), but a tsv file of examples has no header")

    def _example(self, record: Row, untyped: bool, where: str) -> Example | Problem:
        family = self._family
        omissions: list[str] = []
        try:
            record = family.convert_published(record, lambda reason, _: omissions.append(reason))
        except ValueError as wrong:
            return Problem("not in a form of the family", str(wrong))
        if problem := self._repeated(record, where):
            return problem
        values: dict[str, Any] = {}
        for own, file_column in self._named.items():
            value = self._value(own, file_column, record, untyped)
            if isinstance(value, Problem):
                return value
            values[own] = value
        example = family.join_side_tables(values, self._tables)
        problem = family.problem(example)
        # an example without words is dropped and counted by the cleaning step
        if problem and (family.text(example).strip() or any(example[own] is None for own in family.target)):
            return problem
        for reason in omissions:
            self._tally.change(self._reason(f"{reason} left out"))
        return example

    def _value(self, own: str, file_column: str, record: Row, untyped: bool) -> Any:
        """Read the value of a field, or return the problem with it."""
        kind = self._kinds[own]
        if file_column not in record:
            if own in self._family.optional:
                return EMPTY[kind]
            known = ", ".join(map(repr, record))
            return Problem(f"no column {file_column!r}", f"there is no column {file_column!r}; the columns are {known}")
        value = record[file_column]
        try:
            if own == "label" and has_classes(self._family):
                return class_label(value, untyped)
            if kind == "string" and own in self._family.target:
                return answer_text(value)
            return READ[kind](value)
        except ValueError as wrong:
            message = f"the column {file_column!r} holds {_short(value)}, expected {wrong}"
            return Problem(f"{file_column} is not {str(wrong).partition(';')[0]}", message)

    def _repeated(self, record: Row, where: str) -> Problem | None:
        """The problem that another record has the same id; an exact copy of a record is allowed."""
        own = record.get("id")
        if not isinstance(own, str | int) or own == "" or "id" in self._kinds:
            return None
        digest = blake2b(repr(sorted(record.items(), key=lambda item: item[0])).encode(), digest_size=8).digest()
        first, content = self._ids.setdefault(str(own), (where, digest))
        if content == digest:
            return None
        return Problem("duplicate id", f"the id {own!r} is also that of another record, {first}")

    def _reason(self, reason: str) -> str:
        return f"{self._part}: {reason}" if self._part else reason


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
