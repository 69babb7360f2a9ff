"""Labelled examples from files: a row of the family's columns from every record, whatever the format.

A tsv file has no header: its fields are the family's in order. In csv a list is written as JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pipelines.corpora.examples.formats import UNTYPED, example_records
from pipelines.corpora.examples.values import EMPTY, READ, answer_text, class_label
from pipelines.corpora.reading import EXAMPLE_FORMATS, file_format, place
from pipelines.corpora.reading.flaws import Flaw, refused
from pipelines.corpora.settings.task import has_classes
from pipelines.corpora.shards.tally import Tally
from pipelines.errors import DataError
from pipelines.task_families import Lookup, Problem, Row, TaskFamily

Example = dict[str, Any]
"""The family's columns."""

_EXCERPT = 300
_ADVICE = "mend it, or leave such rows out with 'bad_rows: drop'"


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
        """`columns` names the fields that the files call otherwise, `tables` are the family's side tables.

        `tally` hears, by `part` and reason, of what is left out of an example, and of rows that are none where those are left
        out too.
        """
        self._family, self._tables, self._tally, self._part = family, tables or {}, tally, part
        self._drop_bad_rows = drop_bad_rows
        self._kinds = family.fields or family.columns
        self._named = {own: (columns or {}).get(own, own) for own in self._kinds}
        self.places: Counter[str] = Counter()
        """How many values have each mistake, in the rows that were left out."""
        self._ids: dict[str, tuple[str, bytes]] = {}

    def read(self, name: str, path: Path) -> Iterator[tuple[Example, str]]:
        """The examples of a file, and where they stand.

        DataError for a file that cannot be read, and for a row that is no example, with the file, the row and the field.
        """
        untyped = file_format(path, EXAMPLE_FORMATS) in UNTYPED
        fields = {own if untyped else self._named[own]: kind for own, kind in self._kinds.items()}
        for where, record in example_records(name, path, fields, self._flawed):
            example = record if isinstance(record, Problem) else self._example(record, untyped, where)
            if not isinstance(example, Problem):
                yield example, where
            elif not self._drop_bad_rows:
                raise DataError(f"{place(path, where)}: {example}; {_ADVICE}")
            else:
                shown = record if isinstance(record, Problem) else json.dumps(record, ensure_ascii=False, default=str)
                self.places[self._reason(example.reason)] += example.places
                self._tally.drop(self._reason(example.reason), f"{example} | {shown}"[:_EXCERPT], where)

    def _flawed(self, flaw: Flaw) -> None:
        """A row that cannot be read is a bad row; a file that cannot be read is always a mistake."""
        if self._drop_bad_rows and flaw.place:
            self._tally.drop(self._reason(flaw.reason), flaw.excerpt, flaw.where)
        else:
            refused(flaw, f"; {_ADVICE}" if flaw.place else "")

    def _example(self, record: Row, untyped: bool, where: str) -> Example | Problem:
        family = self._family
        left_out: list[str] = []
        try:
            record = family.published(record, lambda reason, _: left_out.append(reason))
        except ValueError as wrong:
            return Problem("not in a form of the family", str(wrong))
        if problem := self._repeated(record, where):
            return problem
        values: dict[str, Any] = {}
        for own, theirs in self._named.items():
            value = self._value(own, theirs, record, untyped)
            if isinstance(value, Problem):
                return value
            values[own] = value
        example = family.looked_up(values, self._tables)
        problem = family.problem(example)
        # an example without any words is dropped and counted when texts are cleaned
        if problem and (family.text(example).strip() or any(example[own] is None for own in family.target)):
            return problem
        for reason in left_out:
            self._tally.change(self._reason(f"{reason} left out"))
        return example

    def _value(self, own: str, theirs: str, record: Row, untyped: bool) -> Any:
        """The value of a field, or the problem with it."""
        kind = self._kinds[own]
        if theirs not in record:
            if own in self._family.optional:
                return EMPTY[kind]
            known = ", ".join(map(repr, record))
            return Problem(f"no column {theirs!r}", f"there is no column {theirs!r}; the columns are {known}")
        value = record[theirs]
        try:
            if own == "label" and has_classes(self._family):
                return class_label(value, untyped)
            if kind == "string" and own in self._family.target:
                return answer_text(value)
            return READ[kind](value)
        except ValueError as wrong:
            told = f"the column {theirs!r} holds {_short(value)}, expected {wrong}"
            return Problem(f"{theirs} is not {str(wrong).partition(';')[0]}", told)

    def _repeated(self, record: Row, where: str) -> Problem | None:
        """The problem that another record has this one's id; a whole record that stands there twice is a plain copy."""
        own = record.get("id")
        if not isinstance(own, str | int) or own == "" or "id" in self._kinds:
            return None
        digest = blake2b(repr(sorted(record.items(), key=lambda item: item[0])).encode(), digest_size=8).digest()
        first, content = self._ids.setdefault(str(own), (where, digest))
        if content == digest:
            return None
        return Problem("id stands twice", f"the id {own!r} is also that of another record, {first}")

    def _reason(self, reason: str) -> str:
        return f"{self._part}: {reason}" if self._part else reason


def _short(value: Any) -> str:
    told = repr(value)
    return told if len(told) <= _EXCERPT else f"{told[:_EXCERPT]}…"
