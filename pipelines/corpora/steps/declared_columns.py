"""Values of the declared columns of a named corpus: how they are read and cleaned.

A row is `text, source, collection` and one value for each declared column, in the order of the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.corpora.examples.values import READ
from pipelines.corpora.reading.flaws import Flaw, FlawHandler


def read_values(
    record: Mapping[str, Any], columns: Mapping[str, str], flaw: Callable[[str, str, str], Flaw], on_flaw: FlawHandler
) -> list[Any] | None:
    """Values of the declared `columns` of a record; None after a call of `on_flaw` for a value of another type.

    `flaw` makes a flaw of a reason, a message and an excerpt.
    """
    values = []
    for name, kind in columns.items():
        if record.get(name) is None:
            known = ", ".join(map(repr, record))
            why = "is empty (null)" if name in record else f"is missing; the columns are {known}"
            on_flaw(flaw("missing column", f"the declared column {name!r} {why}", str(dict(record))))
            return None
        try:
            values.append(READ[kind](record[name]))
        except ValueError as expected:
            shown = f"{record[name]!r:.100}"
            on_flaw(flaw("column of another type", f"the column {name!r} holds {shown}, expected {expected}", shown))
            return None
    return values


def clean_values(values: Sequence[Any], columns: Mapping[str, str], repair: Callable[[str], str]) -> list[Any] | None:
    """Values with every text repaired; None when a repair leaves nothing of a text.

    Lists keep their lengths, because other columns may be aligned with them.
    """
    lost = False

    def clean(text: str) -> str:
        nonlocal lost
        result = repair(text)
        lost = lost or (bool(text) and not result)
        return result

    repairs: dict[str, Callable[[Any], Any]] = {
        "string": clean,
        "list<string>": lambda texts: [*map(clean, texts)],
        "list<list<string>>": lambda rows: [[*map(clean, texts)] for texts in rows],
    }
    result = [
        repairs[kind](value) if kind in repairs else value for value, kind in zip(values, columns.values(), strict=True)
    ]
    return None if lost else result


def flaw_at(name: str, path: Path, where: str) -> Callable[[str, str, str], Flaw]:
    """Function that makes a flaw, of a reason, a message and an excerpt, of the record at `where` in a file."""
    return lambda reason, message, excerpt: Flaw(reason, name, path, where[len(name) :], message, excerpt[:200])
