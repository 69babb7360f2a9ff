"""Select the texts of the domain corpus that the task adapts to beside its own, after decontamination.

selected/task_text/        what was selected, in the order of the domain
selected/selection.json    how many, how near, and a few pairs for eyes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.corpora.duplicates.overlap import text_key
from pipelines.corpora.engines.memory import PARENT
from pipelines.corpora.engines.work import ALONE_BELOW, WorkUnit, run_units
from pipelines.corpora.selections import Pool, Selection, SelectionResult
from pipelines.corpora.settings.dataset import line_of
from pipelines.corpora.shards.folders import WriteShards, manifest, table_files, table_from_units, write_table
from pipelines.corpora.shards.tables import TEXTS, Row, read_rows
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.corpora.steps.step import COUNTS, DataStep, begin, history, run_step
from pipelines.corpora.steps.task_text import draw_examples
from pipelines.errors import RecipeError

SELECTION = "selection.json"
IN_OWN_TEXT = "also in the task's own text"
"""Reason: a selected text that the task has itself."""


def select(dataset: str, root: Path) -> None:
    """Write `selected/` from `decontaminated/`: an empty table where no selection is asked.

    DataError when there is nothing to select from, RecipeError when the selection cannot work as it is written.
    """
    step = begin("select", dataset, root, before="decontaminated")
    before = step.home / "decontaminated"
    selection = step.settings.task_text.selection
    told: dict[str, Any] | None = None
    with step.writing("selected") as folder:
        if selection is None:
            table = write_table(folder / "task_text", TEXTS, [], Tally())
        else:
            table, told = _selected(step, selection, before, folder / "task_text")
        write_json(folder / SELECTION, told)
        write_json(folder / COUNTS, history(read_json(before / COUNTS), "select", {"task_text": table}))


def check_files(selection: Selection, dataset: str, root: Path) -> dict[str, Path]:
    """The files that shape a selection. RecipeError, with its line, when they cannot be used."""
    try:
        return selection.files(root)
    except RecipeError as mistake:
        place = line_of(dataset, root, "task_text", "selection")
        raise RecipeError(f"{place}: datasets.{dataset}.task_text.selection: {mistake}") from None


def _selected(
    step: DataStep, selection: Selection, before: Path, destination: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the table of what is selected. Returns its manifest, and what is told of it."""
    check_files(selection, step.dataset, step.root)
    drawn = draw_examples(list(read_rows(before / "task.parquet")), step.settings, before / "unlabelled")
    rest = drawn.write(step.unfinished("own"))
    own, domain = _counted([before / "unlabelled", rest]), _counted([before / "domain"])
    size = sum(manifest(table)["bytes"] for table in (before / "unlabelled", rest, before / "domain"))

    def at_work(units: Sequence[WorkUnit], name: str, each: int) -> list[Path]:
        at_once = min(step.processes, (step.runtime.memory - PARENT) // each) if size > ALONE_BELOW else 1
        return run_units(units, step.unfinished(name), max(1, at_once))

    found = selection.select(Pool(domain, own, at_work, step.root))
    keys = step.unfinished("keys.npy")
    np.save(keys, np.sort(np.fromiter((_short_key(text) for text in _texts(own)), np.uint64)))
    units, first = [], 0
    home = step.unfinished("chosen")
    home.mkdir(exist_ok=True)
    for number, (path, count) in enumerate(domain.items()):
        mask = home / f".{number:05d}.npy"
        np.save(mask, found.chosen[first : first + count])
        units.append(
            WriteShards(f"{number:05d}", TEXTS, Chosen(path, mask, keys if step.settings.task_text.own else None))
        )
        first += count
    table = table_from_units(units, destination, home, step.processes, size)
    return table, _told(selection, found, table, own)


@dataclass(frozen=True)
class Chosen:
    """The rows of one file of the domain that are chosen and not among the task's own texts."""

    path: Path
    chosen: Path
    """[rows] of truth values."""
    own: Path | None
    """Ascending keys of the task's own texts; None where these are not in the table."""

    def __call__(self, tally: Tally) -> Iterator[Row]:
        chosen = np.load(self.chosen)
        own = np.load(self.own) if self.own else np.empty(0, np.uint64)
        for number, row in enumerate(read_rows(self.path)):
            if not chosen[number]:
                continue
            key = np.uint64(_short_key(row[0]))
            place = int(np.searchsorted(own, key))
            if place < len(own) and own[place] == key:
                tally.drop(IN_OWN_TEXT, row[0], row[1])
            else:
                yield row


def _told(selection: Selection, found: SelectionResult, table: dict[str, Any], own: dict[Path, int]) -> dict[str, Any]:
    return {
        "selection": selection.model_dump(mode="json"),
        "own_texts": sum(own.values()),
        "domain_texts": len(found.chosen),
        "selected_texts": int(found.chosen.sum()),
        "documents": table["documents"],
        "characters": table["characters"],
        "in_own_text": table["dropped"].get(IN_OWN_TEXT, 0),
        "figures": found.figures,
        "shown": found.shown,
    }


def _counted(tables: Sequence[Path]) -> dict[Path, int]:
    """The files of some tables, and how many rows each has."""
    return {
        file: shard["documents"]
        for table in tables
        for file, shard in zip(table_files(table), manifest(table)["shards"], strict=True)
    }


def _texts(files: dict[Path, int]) -> Iterator[str]:
    return (row[0] for file in files for row in read_rows(file))


def _short_key(text: str) -> int:
    """Eight bytes that two texts share when they are the same: among a billion texts, one pair in forty is not."""
    return int.from_bytes(text_key(text)[:8], "big")


if __name__ == "__main__":
    run_step(select)
