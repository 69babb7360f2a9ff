"""Unlabelled examples in JSON: objects with a task family's columns, without its answer.

{"question": "Who wrote it?", "context": "Ada wrote it."}      →  {"answer": "Ada"}
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.errors import DataError
from pipelines.models.opening import CONFIG_KEY
from pipelines.networks.folder import read_json
from pipelines.task_families import Answer, Row, TaskFamily

KINDS: dict[str, tuple[str, tuple[type, ...], type | None]] = {
    "string": ("a text", (str,), None),
    "double": ("a number", (int, float), None),
    "int64": ("a whole number", (int,), None),
    "list<string>": ("a list of texts", (list,), str),
    "list<int64>": ("a list of whole numbers", (list,), int),
    "list<list<string>>": ("a list of lists of texts", (list,), list),
    "list<list<int64>>": ("a list of lists of whole numbers", (list,), list),
    "list<list<double>>": ("a list of lists of numbers", (list,), list),
}
"""Column type → its description, the matching Python types of parsed JSON, and the type of list elements."""


def family_of(folder: Path) -> TaskFamily:
    """The task family of the model in `folder`; the default family for a folder that records none.

    Raises DataError if it was trained on plain text, and answers no task.
    """
    recorded = read_json(folder / "config.json").get(CONFIG_KEY)
    if recorded is None:
        return TaskFamily.default()
    if recorded.get("family") is None:
        raise DataError(f"{folder}: trained on plain text, it answers no task; name a finetune or compress stage")
    return TaskFamily.model_validate(recorded["family"])


def input_columns(family: TaskFamily) -> dict[str, str]:
    """The columns of an example without its answer."""
    return {name: kind for name, kind in family.columns.items() if name not in family.target}


def parse_example(family: TaskFamily, given: Any, where: str) -> Row:
    """`given` as an example of `family`; other keys are dropped, including that of the answer, and columns that the
    family does not require are empty where they are missing.

    Raises DataError, with `where` and the column, for a column that is missing, empty or of another type.
    """
    columns = input_columns(family)
    if not isinstance(given, Mapping):
        raise DataError(f"{where}: expected a JSON object; an example of {family.name} has {_listed(columns)}")
    for name in family.optional & columns.keys():
        if given.get(name) is None:
            given = {**given, name: "" if columns[name] == "string" else []}
    for name, kind in columns.items():
        words, types, inside = KINDS[kind]
        if name not in given:
            raise DataError(
                f"{where}: the column {name!r} is missing; an example of {family.name} has {_listed(columns)}"
            )
        value = given[name]
        sound = isinstance(value, types) and not isinstance(value, bool)
        if not sound or (inside is not None and not all(isinstance(one, inside) for one in value)):
            raise DataError(f"{where}: the column {name!r} holds {_short(value)}, expected {words}")
    if not family.text({name: given[name] for name in columns}).strip():
        raise DataError(f"{where}: all texts of the example are empty; fill in at least one")
    return {name: given[name] for name in columns}


def parse_examples(family: TaskFamily, lines: Iterable[str], file: Path | None = None) -> Iterator[Row]:
    """One example per non-blank line of JSON. Raises DataError with the line number, and the `file` if it is given."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"line {number}" if file is None else f"{file}:{number}"
            try:
                given = json.loads(line)
            except ValueError as error:
                raise DataError(f"{where}: not JSON ({error}); write one object per line") from None
            yield parse_example(family, given, where)


def as_json(answer: Answer) -> Any:
    """An answer as a JSON value: null for a number that is not finite."""
    return None if isinstance(answer, float) and not math.isfinite(answer) else answer


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name!r} ({KINDS[kind][0]})" for name, kind in columns.items())


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
