"""Names of the labelled tables of a dataset: `train`, `validation` and `test`, and for a named task `stsb.train` ….

A dataset has a main task, which recipes call `task`, and may have further ones with names of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")
NAMED = "named"
"""Folder, in that of a dataset, of the tables that only some datasets have."""
MAIN = "task"
"""Name of the main task of every dataset."""
PARTS = ("train", "validation", "test")
"""Parts of a labelled set, farthest from the test first."""


def labelled_table(task: str, part: str) -> str:
    """Name of the table with one part of a task."""
    return part if task == MAIN else f"{task}.{part}"


def task_and_part(table: str) -> tuple[str, str] | None:
    """The task and the part that a labelled table holds; None for a table of plain text."""
    task, _, part = table.rpartition(".")
    return (task or MAIN, part) if part in PARTS else None


def read_as(table: str) -> str:
    """The word of a recipe's `corpus` for which a table is read."""
    known = task_and_part(table)
    return known[0] if known else table


def tables_of_task(tables: Mapping[str, T], task: str) -> dict[str, T]:
    """The tables of one task by part (`train`, …), and all tables of plain text by name."""
    known = {name: task_and_part(name) or (task, name) for name in tables}
    return {part: tables[name] for name, (owner, part) in known.items() if owner == task}


def tasks_in(tables: Iterable[str]) -> list[str]:
    """The tasks that have a table among `tables`, in the order of their first ones."""
    return list(dict.fromkeys(known[0] for table in tables if (known := task_and_part(table))))
