"""Step `decontaminate`: record texts that overlap validation or test in the ledger, and drop them, keep them, or fail.

The labelled set is checked first: validation against test, then training against both. If the set is kept as published,
`leaks.parquet` lists the evaluation rows that also occur in another part, so that a score on the clean rows can be
given alongside the official one. Then every shard of plain text is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

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
from pipelines.corpora.settings.tables import UNLABELLED, columns_of, plain_tables, schema_of, task_file
from pipelines.corpora.shards.columns import texts_of
from pipelines.corpora.shards.folders import WriteShards, manifest, table_files, table_from_folders
from pipelines.corpora.shards.tables import TEXTS, Row, labelled_parts, read_rows, write_rows
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.corpora.steps.examples_left import OVERLAP, check_examples_left, dropped_so_far
from pipelines.corpora.steps.step import COUNTS, begin, history, run_step
from pipelines.errors import DataError
from pipelines.task_families.labelled_tables import MAIN, labelled_table

COMPARED_PARTS = {"validation": ("test",), "train": ("validation", "test")}
"""Part of a labelled set → parts that it must not overlap."""


def decontaminate(dataset: str, root: Path) -> None:
    """Write `decontaminated/` from `deduplicated/`.

    Raises DataError when a table becomes empty, a label is lost, or when there is overlap and `decontaminate.action` is
    `fail`.
    """
    step = begin("decontaminate", dataset, root, before="deduplicated")
    settings = step.settings.decontaminate
    rules, before = rules_of(step.settings), step.home / "deduplicated"
    plain, earlier = plain_tables(step.settings), read_json(before / COUNTS)
    with step.writing("decontaminated") as folder:
        ledgers = [before / LEDGER]
        labelled = {name: list(read_rows(before / task_file(name))) for name in step.settings.labelled}
        tallies = {name: Tally() for name in labelled}
        overlapping = list(_decontaminated_tasks(labelled, rules, settings.inside, tallies))
        tables: dict[str, Any] = {}
        for name, task in step.settings.labelled.items():
            check_examples_left(
                dataset, name, task.family, labelled[name], dropped_so_far(earlier, name, tallies[name])
            )
            counts = write_rows(folder / task_file(name), labelled_parts(task.family), labelled[name])
            tables[name] = counts | tallies[name].counts()
        # where what overlaps is dropped nothing is left to find, and looking for it reads the training texts twice more
        kept = {} if settings.inside == "drop" else labelled
        leaked = (row for name, rows in kept.items() for row in leaks(rows, rules, name))
        write_rows(folder / LEAKS, LEAKS_COLUMNS, leaked)
        evaluation = step.unfinished("labelled") / "evaluation.parquet"
        evaluation.parent.mkdir(parents=True, exist_ok=True)
        write_rows(evaluation, EVALUATION, _evaluated(labelled, COMPARED_PARTS["train"]))
        for name in plain:
            columns = tuple(columns_of(step.settings, name).items())
            units = [
                DecontaminatedShard(
                    f"{number:05d}",
                    path,
                    evaluation,
                    rules,
                    settings.action,
                    schema_of(step.settings, name),
                    columns,
                )
                for number, path in enumerate(table_files(before / name))
            ]
            processes = step.processes if manifest(before / name)["bytes"] > ALONE_BELOW else 1
            done = run_units(units, step.unfinished_table(name), processes)
            tables[name] = table_from_folders(done, folder / name)
            ledgers += [each / LEDGER for each in done]
            if tables[name]["dropped"] and not tables[name]["documents"] and name != UNLABELLED:
                raise DataError(f"{dataset}: every text of {name!r} overlaps validation or test; give it other sources")
        write_ledger(folder / LEDGER, chain(overlapping, *map(read_rows, ledgers)))
        overlaps = totals(read_rows(folder / LEDGER))
        if settings.action == "fail" and any(each["table"] in plain for each in overlaps):
            raise DataError(overlap_message(dataset, [row for row in read_rows(folder / LEDGER) if row[1] in plain]))
        for name, table in tables.items():
            own = (name,) if name in plain else tuple(labelled_table(name, part) for part in COMPARED_PARTS)
            tables[name] = table | {"ledger": [each for each in overlaps if each["table"] in own]}
        write_json(folder / COUNTS, history(earlier, "decontaminate", tables))


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
    schema: pa.Schema = TEXTS
    columns: tuple[tuple[str, str], ...] = ()
    """Declared columns and their types; texts in them may overlap as well."""

    def __call__(self, folder: Path) -> None:
        ledger: list[Row] = []
        WriteShards(self.name, self.schema, lambda tally: self._rows(tally, ledger))(folder)
        write_ledger(folder / LEDGER, ledger)

    def _rows(self, tally: Tally, ledger: list[Row]) -> Iterator[Row]:
        texts, index = load_index(self.evaluation, self.rules)
        columns = dict(self.columns)
        for row, hits in with_hits(read_rows(self.path), index, lambda row: texts_of(row, columns)):
            ledger += ledger_rows(row[0], self.path.parent.name, row[1], hits, texts, self.action)
            if hits and self.action == "drop":
                tally.drop("overlap", row[0], row[1])
            else:
                yield row


def _decontaminated_tasks(
    labelled: dict[str, list[Row]], rules: OverlapRules, inside: str, tallies: Mapping[str, Tally]
) -> Iterator[Row]:
    """Replace the rows of every task by those without overlap. Yields the ledger.

    Validation is compared with the test part of its own task; training with validation and test of all tasks, since a
    model may be trained on several.
    """
    for part, others in COMPARED_PARTS.items():
        for name, rows in labelled.items():
            compared = labelled if part == "train" else {name: rows}
            evaluated = [EvaluationText(*row) for row in _evaluated(compared, others)]
            labelled[name], ledger = without_overlap(rows, part, evaluated, rules, inside, tallies[name], name)
            yield from ledger


def _evaluated(labelled: Mapping[str, Sequence[Row]], parts: Sequence[str]) -> Iterator[Row]:
    """Yield text, source and table of the rows of some parts of tasks."""
    for name, rows in labelled.items():
        yield from ((row[0], row[-2], labelled_table(name, row[-1])) for row in rows if row[-1] in parts)


def without_overlap(
    rows: list[Row],
    part: str,
    evaluated: Sequence[EvaluationText],
    rules: OverlapRules,
    inside: str,
    tally: Tally,
    task: str = MAIN,
) -> tuple[list[Row], list[Row]]:
    """Rows of a task without those of `part` that overlap a text of `evaluated`, and the ledger of overlaps.

    Overlapping rows are removed only if `inside` is "drop".
    """
    checked = [row for row in rows if row[-1] == part]
    index = EvaluationIndex([each.text for each in evaluated], rules)
    overlapping: list[Row] = []
    dropped: set[int] = set()
    for row, hits in with_hits(checked, index):
        overlapping += ledger_rows(row[0], labelled_table(task, part), row[-2], hits, evaluated, inside)
        if hits and inside == "drop":
            tally.drop(f"{part}: {OVERLAP}", row[0], row[-2])
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


def leaks(task: Sequence[Row], rules: OverlapRules, name: str = MAIN) -> Iterator[Row]:
    """Yield evaluation rows that overlap another part: test against both other parts, validation against train.

    `name` is that of the task, `row` is the index of the row within its part.
    """
    for part, others in (("test", ("train", "validation")), ("validation", ("train",))):
        checked = [row for row in task if row[-1] == part]
        index = EvaluationIndex([row[0] for row in checked], rules)
        table = labelled_table(name, part)
        for other in others:
            learned = [row for row in task if row[-1] == other]
            overlaps = index.hits_among(row[0] for row in learned)
            for number, (row, hits) in enumerate(zip(checked, overlaps, strict=True)):
                for kind, position, overlap in hits:
                    yield (row[-2], table, number, kind, overlap, labelled_table(name, other), learned[position][-2])


if __name__ == "__main__":
    run_step(decontaminate)
