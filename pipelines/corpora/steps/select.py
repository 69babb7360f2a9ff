"""Step `select`: select the texts of the decontaminated domain corpus that join the task's own in task adaptation.

selected/task_text/        selected texts, in the order of the domain corpus
selected/selection.json    their number, their similarity, and a few pairs for inspection
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
"""Reason for dropping a selected text: it is one of the task's own texts."""


def select(dataset: str, root: Path) -> None:
    """Write `selected/` from `decontaminated/`: an empty table when no selection is configured.

    Raises DataError when there is nothing to select from, RecipeError when the settings of the selection are invalid.
    """
    step = begin("select", dataset, root, before="decontaminated")
    before = step.home / "decontaminated"
    selection = step.settings.task_text.selection
    record: dict[str, Any] | None = None
    with step.writing("selected") as folder:
        if selection is None:
            table = write_table(folder / "task_text", TEXTS, [], Tally())
        else:
            table, record = _selected(step, selection, before, folder / "task_text")
        write_json(folder / SELECTION, record)
        write_json(folder / COUNTS, history(read_json(before / COUNTS), "select", {"task_text": table}))


def check_files(selection: Selection, dataset: str, root: Path) -> dict[str, Path]:
    """Files that affect a selection. Raises RecipeError, with the line in params.yaml, when they cannot be used."""
    try:
        return selection.files(root)
    except RecipeError as mistake:
        location = line_of(dataset, root, "task_text", "selection")
        raise RecipeError(f"{location}: datasets.{dataset}.task_text.selection: {mistake}") from None


def _selected(
    step: DataStep, selection: Selection, before: Path, destination: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the table of selected texts. Returns its manifest, and the record of the selection."""
    check_files(selection, step.dataset, step.root)
    drawn = draw_examples(list(read_rows(before / "task.parquet")), step.settings, before / "unlabelled")
    rest = drawn.write(step.unfinished("own"))
    own, domain = _counted([before / "unlabelled", rest]), _counted([before / "domain"])
    size = sum(manifest(table)["bytes"] for table in (before / "unlabelled", rest, before / "domain"))

    def run_selection_units(units: Sequence[WorkUnit], name: str, each: int) -> list[Path]:
        at_once = min(step.processes, (step.runtime.memory - PARENT) // each) if size > ALONE_BELOW else 1
        return run_units(units, step.unfinished(name), max(1, at_once))

    result = selection.select(Pool(domain, own, run_selection_units, step.root))
    keys = step.unfinished("keys.npy")
    np.save(keys, np.sort(np.fromiter((_short_key(text) for text in _texts(own)), np.uint64)))
    units, first = [], 0
    home = step.unfinished("chosen")
    home.mkdir(exist_ok=True)
    for number, (path, count) in enumerate(domain.items()):
        mask = home / f".{number:05d}.npy"
        np.save(mask, result.chosen[first : first + count])
        units.append(
            WriteShards(f"{number:05d}", TEXTS, Chosen(path, mask, keys if step.settings.task_text.own else None))
        )
        first += count
    table = table_from_units(units, destination, home, step.processes, size)
    return table, _record(selection, result, table, own)


@dataclass(frozen=True)
class Chosen:
    """Rows of one file of the domain corpus that are selected and not among the task's own texts."""

    path: Path
    chosen: Path
    """File with bool [rows]: whether each row is selected."""
    own: Path | None
    """File with the ascending keys of the task's own texts; None when these do not join the table."""

    def __call__(self, tally: Tally) -> Iterator[Row]:
        chosen = np.load(self.chosen)
        own = np.load(self.own) if self.own else np.empty(0, np.uint64)
        for number, row in enumerate(read_rows(self.path)):
            if not chosen[number]:
                continue
            key = np.uint64(_short_key(row[0]))
            position = int(np.searchsorted(own, key))
            if position < len(own) and own[position] == key:
                tally.drop(IN_OWN_TEXT, row[0], row[1])
            else:
                yield row


def _record(
    selection: Selection, result: SelectionResult, table: dict[str, Any], own: dict[Path, int]
) -> dict[str, Any]:
    return {
        "selection": selection.model_dump(mode="json"),
        "own_texts": sum(own.values()),
        "domain_texts": len(result.chosen),
        "selected_texts": int(result.chosen.sum()),
        "documents": table["documents"],
        "characters": table["characters"],
        "in_own_text": table["dropped"].get(IN_OWN_TEXT, 0),
        "figures": result.figures,
        "shown": result.shown,
    }


def _counted(tables: Sequence[Path]) -> dict[Path, int]:
    """File → number of rows, for the files of some tables."""
    return {
        file: shard["documents"]
        for table in tables
        for file, shard in zip(table_files(table), manifest(table)["shards"], strict=True)
    }


def _texts(files: dict[Path, int]) -> Iterator[str]:
    return (row[0] for file in files for row in read_rows(file))


def _short_key(text: str) -> int:
    """64-bit key that equal texts share; among a billion texts, a collision has a probability of about 1/40."""
    return int.from_bytes(text_key(text)[:8], "big")


if __name__ == "__main__":
    run_step(select)
