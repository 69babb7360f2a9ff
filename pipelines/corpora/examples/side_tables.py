"""Read side tables: further files of a task whose rows examples refer to by key, such as tables, entities,
relations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.corpora.examples.formats import example_records
from pipelines.corpora.examples.values import EMPTY, READ
from pipelines.corpora.reading import EXAMPLE_FORMATS, find_files, location
from pipelines.corpora.reading.flaws import refuse
from pipelines.errors import DataError
from pipelines.task_families import Problem, Row, SideTable, TaskFamily


def read_side_tables(family: TaskFamily, paths: Mapping[str, str], root: Path) -> dict[str, dict[str, Row]]:
    """Read every side table of a family, as rows by key, from its file, folder or glob in `paths`.

    DataError for an unreadable file, a row without a field or a key, and two rows with the same key.
    """
    result: dict[str, dict[str, Row]] = {}
    for name, table in family.side_tables.items():
        rows: dict[str, Row] = {}
        locations: dict[str, str] = {}
        for file, path in find_files(paths[name], root, EXAMPLE_FORMATS).items():
            least = len(table.fields) - len(table.optional)
            for where, record in example_records(file, path, table.fields, refuse, least):
                row = _row(record, table, f"{location(path, where)}: {name}")
                key = row[next(iter(table.fields))]
                if key in rows:
                    raise DataError(
                        f"{location(path, where)}: {name}: the key {key!r} occurs already in {locations[key]}"
                    )
                rows[key], locations[key] = row, where
        result[name] = rows
    return result


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
