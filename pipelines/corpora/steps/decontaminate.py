"""Step `decontaminate`: record texts that overlap validation or test in the ledger, and drop them, keep them, or fail.

The labelled set is checked first: validation against test, then training against both. If the set is kept as published,
`leaks.parquet` lists the evaluation rows that also occur in another part, so that a score on the clean rows can be
given alongside the official one. Then every shard of plain text is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pipelines.corpora.duplicates.shingles import unit_of
from pipelines.corpora.engines.work import ALONE_BELOW, run_units
from pipelines.corpora.leaks.evaluation_index import (
    EvaluationIndex,
    EvaluationText,
    Hit,
    OverlapRules,
    load_index,
    with_hits,
)
from pipelines.corpora.leaks.leaked_rows import LEAKS, LEAKS_COLUMNS
from pipelines.corpora.leaks.ledger import (
    EVALUATION,
    LEDGER,
    LedgerEntry,
    excerpt,
    overlap_message,
    totals,
    write_ledger,
)
from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.shards.folders import WriteShards, manifest, table_files, table_from_folders
from pipelines.corpora.shards.tables import TEXTS, Row, labelled_parts, read_rows, write_rows
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.corpora.steps.step import COUNTS, PLAIN, begin, history, run_step
from pipelines.errors import DataError

COMPARED_PARTS = {"validation": ("test",), "train": ("validation", "test")}
"""Part of a labelled set → parts that it must not overlap."""


def decontaminate(dataset: str, root: Path) -> None:
    """Write `decontaminated/` from `deduplicated/`.

    Raises DataError when a table becomes empty, or when there is overlap and `decontaminate.action` is `fail`.
    """
    step = begin("decontaminate", dataset, root, before="deduplicated")
    settings, family = step.settings.decontaminate, step.settings.main.family
    rules, before = rules_of(step.settings), step.home / "deduplicated"
    with step.writing("decontaminated") as folder:
        tally, ledgers = Tally(), [before / LEDGER]
        overlapping: list[Row] = []
        task = list(read_rows(before / "task.parquet"))
        for part, others in COMPARED_PARTS.items():
            task, new_rows = without_overlap(task, part, others, rules, settings.inside, tally)
            overlapping += new_rows
        counts = write_rows(folder / "task.parquet", labelled_parts(family), task)
        write_rows(folder / LEAKS, LEAKS_COLUMNS, leaks(task, rules))
        tables: dict[str, Any] = {"task": counts | tally.counts()}
        evaluation = step.unfinished("labelled") / "evaluation.parquet"
        evaluation.parent.mkdir(parents=True, exist_ok=True)
        write_rows(
            evaluation, EVALUATION, ((row[0], row[-2], row[-1]) for row in task if row[-1] in COMPARED_PARTS["train"])
        )
        for name in PLAIN:
            units = [
                DecontaminatedShard(f"{number:05d}", path, evaluation, rules, settings.action)
                for number, path in enumerate(table_files(before / name))
            ]
            processes = step.processes if manifest(before / name)["bytes"] > ALONE_BELOW else 1
            done = run_units(units, step.unfinished(name), processes)
            tables[name] = table_from_folders(done, folder / name)
            ledgers += [each / LEDGER for each in done]
            if tables[name]["dropped"] and not tables[name]["documents"] and name != "unlabelled":
                raise DataError(f"{dataset}: every text of {name!r} overlaps validation or test; give it other sources")
        write_ledger(folder / LEDGER, chain(overlapping, *map(read_rows, ledgers)))
        overlaps = totals(read_rows(folder / LEDGER))
        if settings.action == "fail" and any(each["table"] in PLAIN for each in overlaps):
            raise DataError(overlap_message(dataset, [row for row in read_rows(folder / LEDGER) if row[1] in PLAIN]))
        for name, table in tables.items():
            own = (name,) if name in PLAIN else tuple(COMPARED_PARTS)
            tables[name] = table | {"ledger": [each for each in overlaps if each["table"] in own]}
        write_json(folder / COUNTS, history(read_json(before / COUNTS), "decontaminate", tables))


def rules_of(settings: DatasetSettings) -> OverlapRules:
    """Thresholds of overlap for a dataset."""
    thresholds = settings.decontaminate
    return OverlapRules(thresholds.words, thresholds.overlap, thresholds.near, unit_of(settings.language))


@dataclass(frozen=True)
class DecontaminatedShard:
    """Unit of work: write the texts of one shard without those to be dropped, and a ledger of those that overlap."""

    name: str
    path: Path
    evaluation: Path
    rules: OverlapRules
    action: str

    def __call__(self, folder: Path) -> None:
        ledger: list[Row] = []
        WriteShards(self.name, TEXTS, lambda tally: self._rows(tally, ledger))(folder)
        write_ledger(folder / LEDGER, ledger)

    def _rows(self, tally: Tally, ledger: list[Row]) -> Iterator[Row]:
        texts, index = load_index(self.evaluation, self.rules)
        for row, hits in with_hits(read_rows(self.path), index):
            ledger += ledger_rows(row[0], self.path.parent.name, row[1], hits, texts, self.action)
            if hits and self.action == "drop":
                tally.drop("overlap", row[0], row[1])
            else:
                yield row


def without_overlap(
    rows: list[Row], part: str, others: Sequence[str], rules: OverlapRules, inside: str, tally: Tally
) -> tuple[list[Row], list[Row]]:
    """Rows of a task without those of `part` that overlap a row of `others`, and the ledger of overlaps.

    Overlapping rows are removed only if `inside` is "drop".
    """
    evaluated = [EvaluationText(row[0], row[-2], row[-1]) for row in rows if row[-1] in others]
    checked = [row for row in rows if row[-1] == part]
    index = EvaluationIndex([each.text for each in evaluated], rules)
    overlapping: list[Row] = []
    dropped: set[int] = set()
    for row, hits in with_hits(checked, index):
        overlapping += ledger_rows(row[0], part, row[-2], hits, evaluated, inside)
        if hits and inside == "drop":
            tally.drop(f"{part}: overlap", row[0], row[-2])
            dropped.add(id(row))
    return [row for row in rows if id(row) not in dropped], overlapping


def ledger_rows(
    text: str, table: str, source: str, hits: Sequence[Hit], evaluated: Sequence[EvaluationText], action: str
) -> list[Row]:
    """Ledger rows for a text and its hits."""
    result = []
    for kind, number, overlap in hits:
        other = evaluated[number]
        result.append(
            LedgerEntry(
                excerpt(text), table, source, other.part, other.source, kind, overlap, excerpt(other.text), action
            ).row
        )
    return result


def leaks(task: Sequence[Row], rules: OverlapRules) -> Iterator[Row]:
    """Yield evaluation rows that overlap another part: test against both other parts, validation against train.

    `row` is the index of the row within its part.
    """
    for part, others in (("test", ("train", "validation")), ("validation", ("train",))):
        for other in others:
            learned = [EvaluationText(row[0], row[-2], row[-1]) for row in task if row[-1] == other]
            index = EvaluationIndex([each.text for each in learned], rules)
            checked = [row for row in task if row[-1] == part]
            for number, (row, hits) in enumerate(with_hits(checked, index)):
                for kind, position, overlap in hits:
                    yield (row[-2], part, number, kind, overlap, other, learned[position].source)


if __name__ == "__main__":
    run_step(decontaminate)
