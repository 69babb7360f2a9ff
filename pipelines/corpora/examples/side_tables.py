"""The further files of a task, to whose rows its examples refer by a key: tables, entities, relations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.corpora.examples.formats import example_records
from pipelines.corpora.examples.values import EMPTY, READ
from pipelines.corpora.reading import EXAMPLE_FORMATS, find_files, place
from pipelines.corpora.reading.flaws import refused
from pipelines.errors import DataError
from pipelines.task_families import Problem, Row, SideTable, TaskFamily


def read_side_tables(family: TaskFamily, paths: Mapping[str, str], root: Path) -> dict[str, dict[str, Row]]:
    """The rows of every side table of a family by their key, from the file, folder or glob that `paths` names for it.

    DataError for a file that cannot be read, for a row without a field or a key, and for two rows with one key.
    """
    found: dict[str, dict[str, Row]] = {}
    for name, table in family.side_tables.items():
        rows: dict[str, Row] = {}
        stands: dict[str, str] = {}
        for file, path in find_files(paths[name], root, EXAMPLE_FORMATS).items():
            least = len(table.fields) - len(table.optional)
            for where, record in example_records(file, path, table.fields, refused, least):
                row = _row(record, table, f"{place(path, where)}: {name}")
                key = row[next(iter(table.fields))]
                if key in rows:
                    raise DataError(
                        f"{place(path, where)}: {name}: the key {key!r} stands there already, {stands[key]}"
                    )
                rows[key], stands[key] = row, where
        found[name] = rows
    return found


def _row(record: dict[str, Any] | Problem, table: SideTable, where: str) -> Row:
    if isinstance(record, Problem):
        raise DataError(f"{where}: {record}")
    row: dict[str, Any] = {}
    for field, kind in table.fields.items():
        if field not in record and field in table.optional:
            row[field] = EMPTY[kind]
            continue
        if field not in record:
            known = ", ".join(map(repr, record))
            raise DataError(f"{where}: there is no column {field!r}; the columns are {known}")
        try:
            row[field] = READ[kind](record[field])
        except ValueError as wrong:
            raise DataError(f"{where}: the column {field!r} holds {record[field]!r}, expected {wrong}") from None
    key = next(iter(table.fields))
    if not row[key]:
        raise DataError(f"{where}: the column {key!r} is empty")
    return row
