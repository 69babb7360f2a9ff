"""Examples from outside: JSON objects with a task family's columns, its answer left out.

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
}
"""What a column holds → in words, the types of JSON that are that, and of a list's members."""


def family_of(folder: Path) -> TaskFamily:
    """The task that the model in `folder` answers; of a folder that does not say, the usual one.

    Raises DataError when it was trained on plain text, and answers none.
    """
    noted = read_json(folder / "config.json").get(CONFIG_KEY)
    if noted is None:
        return TaskFamily.default()
    if noted.get("family") is None:
        raise DataError(f"{folder}: trained on plain text, it answers no task; name a finetune or compress stage")
    return TaskFamily.model_validate(noted["family"])


def input_columns(family: TaskFamily) -> dict[str, str]:
    """The columns of an example whose answer is not known."""
    return {name: kind for name, kind in family.columns.items() if name not in family.target}


def parse_example(family: TaskFamily, given: Any, where: str) -> Row:
    """`given` as an example of `family`; further keys are dropped, the right answer's among them.

    Raises DataError, naming `where` and the column, for one that is missing, empty or of another type.
    """
    columns = input_columns(family)
    if not isinstance(given, Mapping):
        raise DataError(f"{where}: not a JSON object; an example of {family.name} has {_listed(columns)}")
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
        raise DataError(f"{where}: its texts are empty, there is nothing to answer")
    return {name: given[name] for name in columns}


def parse_examples(family: TaskFamily, lines: Iterable[str]) -> Iterator[Row]:
    """An example of each line of JSON that is not blank. Raises DataError naming the line."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                given = json.loads(line)
            except ValueError as error:
                raise DataError(f"line {number}: not JSON ({error}); write one object a line") from None
            yield parse_example(family, given, f"line {number}")


def as_json(answer: Answer) -> Any:
    """An answer as JSON has it: null for a number that is none."""
    return None if isinstance(answer, float) and not math.isfinite(answer) else answer


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name!r} ({KINDS[kind][0]})" for name, kind in columns.items())


def _short(value: Any) -> str:
    told = json.dumps(value, ensure_ascii=False)
    return told if len(told) <= 60 else f"{told[:59]}…"
