"""Find what overlaps validation or test, write it into the ledger, and take it away, or leave it, or stop.

The labelled set is looked at first: validation beside test, then training beside both. Where the set is kept as it was
published, `leaks.parquet` says which evaluation rows stand elsewhere in it, so that a score on the clean ones can be given
beside the official one. Then every shard of plain text is looked at.
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
"""What each part of a labelled set must not overlap."""


def decontaminate(dataset: str, root: Path) -> None:
    """Write `decontaminated/` from `deduplicated/`. DataError when nothing of a table is left, or overlap is forbidden."""
    step = begin("decontaminate", dataset, root, before="deduplicated")
    settings, family = step.settings.decontaminate, step.settings.task.family
    rules, before = rules_of(step.settings), step.home / "deduplicated"
    with step.writing("decontaminated") as folder:
        tally, ledgers = Tally(), [before / LEDGER]
        overlapping: list[Row] = []
        task = list(read_rows(before / "task.parquet"))
        for part, others in COMPARED_PARTS.items():
            task, found = without_overlap(task, part, others, rules, settings.inside, tally)
            overlapping += found
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
        told = totals(read_rows(folder / LEDGER))
        if settings.action == "fail" and any(each["table"] in PLAIN for each in told):
            raise DataError(overlap_message(dataset, [row for row in read_rows(folder / LEDGER) if row[1] in PLAIN]))
        for name, table in tables.items():
            own = (name,) if name in PLAIN else tuple(COMPARED_PARTS)
            tables[name] = table | {"ledger": [each for each in told if each["table"] in own]}
        write_json(folder / COUNTS, history(read_json(before / COUNTS), "decontaminate", tables))


def rules_of(settings: DatasetSettings) -> OverlapRules:
    """From when on texts of a dataset overlap."""
    asked = settings.decontaminate
    return OverlapRules(asked.words, asked.overlap, asked.near, unit_of(settings.language))


@dataclass(frozen=True)
class DecontaminatedShard:
    """A unit of work: the texts of one shard that overlap no evaluation text, and a ledger of those that do."""

    name: str
    path: Path
    evaluation: Path
    rules: OverlapRules
    action: str

    def __call__(self, folder: Path) -> None:
        found: list[Row] = []
        WriteShards(self.name, TEXTS, lambda tally: self._rows(tally, found))(folder)
        write_ledger(folder / LEDGER, found)

    def _rows(self, tally: Tally, found: list[Row]) -> Iterator[Row]:
        texts, index = load_index(self.evaluation, self.rules)
        for row, hits in with_hits(read_rows(self.path), index):
            found += ledger_rows(row[0], self.path.parent.name, row[1], hits, texts, self.action)
            if hits and self.action == "drop":
                tally.drop("overlap", row[0], row[1])
            else:
                yield row


def without_overlap(
    rows: list[Row], part: str, others: Sequence[str], rules: OverlapRules, inside: str, tally: Tally
) -> tuple[list[Row], list[Row]]:
    """The rows of a task without those of `part` that overlap a row of `others`, unless they are kept; and a ledger."""
    evaluated = [EvaluationText(row[0], row[-2], row[-1]) for row in rows if row[-1] in others]
    asked = [row for row in rows if row[-1] == part]
    index = EvaluationIndex([each.text for each in evaluated], rules)
    overlapping: list[Row] = []
    gone: set[int] = set()
    for row, hits in with_hits(asked, index):
        overlapping += ledger_rows(row[0], part, row[-2], hits, evaluated, inside)
        if hits and inside == "drop":
            tally.drop(f"{part}: overlap", row[0], row[-2])
            gone.add(id(row))
    return [row for row in rows if id(row) not in gone], overlapping


def ledger_rows(
    text: str, table: str, source: str, hits: Sequence[Hit], evaluated: Sequence[EvaluationText], action: str
) -> list[Row]:
    """What the ledger says of a text."""
    found = []
    for kind, number, overlap in hits:
        other = evaluated[number]
        found.append(
            LedgerEntry(
                excerpt(text), table, source, other.part, other.source, kind, overlap, excerpt(other.text), action
            ).row
        )
    return found


def leaks(task: Sequence[Row], rules: OverlapRules) -> Iterator[Row]:
    """Evaluation rows that overlap another part of the labelled set: test beside both others, validation beside train.

    `row` is the place of the row among those of its part.
    """
    for part, others in (("test", ("train", "validation")), ("validation", ("train",))):
        for other in others:
            learned = [EvaluationText(row[0], row[-2], row[-1]) for row in task if row[-1] == other]
            index = EvaluationIndex([each.text for each in learned], rules)
            asked = [row for row in task if row[-1] == part]
            for number, (row, hits) in enumerate(with_hits(asked, index)):
                for kind, place, overlap in hits:
                    yield (row[-2], part, number, kind, overlap, other, learned[place].source)


if __name__ == "__main__":
    run_step(decontaminate)
