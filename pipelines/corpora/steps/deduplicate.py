"""Step `deduplicate`: keep every text once, first in an evaluation part, then in training, then in the smaller corpus.

From the labelled set only exact copies are removed; from plain text also near-duplicates of other plain text and,
optionally, paragraphs that occur in an earlier text. Each shard is read twice, by all processes: to write its sketches,
and to write the texts that are kept. In between, one process compares the keys of all shards
(`pipelines.corpora.duplicates.verdicts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.corpora.duplicates.minhash import Bands
from pipelines.corpora.duplicates.paragraphs import without_paragraphs
from pipelines.corpora.duplicates.published import ExampleKeys, published_leaks
from pipelines.corpora.duplicates.shingles import Letters, Shingle, batches, unit_of
from pipelines.corpora.duplicates.sketches import TEXTS_KEYS, SketchedShard
from pipelines.corpora.duplicates.sorted_keys import write_sorted
from pipelines.corpora.duplicates.verdicts import (
    COPIES,
    KEPT,
    VERDICTS,
    DuplicateVerdicts,
    drop_reasons,
    repeated_paragraphs,
)
from pipelines.corpora.engines.work import ALONE_BELOW, run_units
from pipelines.corpora.leaks.ledger import EVALUATION, LEDGER, LedgerEntry, excerpt, write_ledger
from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.settings.tables import UNLABELLED, plain_tables, schema_of, task_file
from pipelines.corpora.shards.folders import WriteShards, manifest, table_from_folders
from pipelines.corpora.shards.tables import TEXTS, ExampleRows, Row, labelled_parts, read_rows, write_rows
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.corpora.steps.examples_left import OTHER_LABEL, SAME_TEXT, check_examples_left, dropped_so_far
from pipelines.corpora.steps.step import COUNTS, DataStep, begin, history, run_step
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import PARTS, labelled_table

KEEPS_FIRST = ("test", "validation", "train")
"""Parts of the labelled set in order of preference: the first keeps a repeated text."""


def deduplicate(dataset: str, root: Path) -> None:
    """Write `deduplicated/` from `cleaned/`. Raises DataError when a corpus becomes empty, or a label is lost."""
    step = begin("deduplicate", dataset, root, before="cleaned")
    settings, rules = step.settings, step.settings.deduplicate
    before = step.home / "cleaned"
    earlier = read_json(before / COUNTS)
    order = plain_tables(settings)[::-1]  # of plain text, the first table keeps a repeated text
    with step.writing("deduplicated") as folder:
        tables: dict[str, Any] = {}
        tasks = {name: list(read_rows(before / task_file(name))) for name in settings.labelled}
        for name, task in settings.labelled.items():
            tally = Tally()
            keys = example_keys(tasks[name], task.family)
            published = published_leaks(keys)
            if settings.decontaminate.inside == "drop":
                tasks[name] = unique_examples(tasks[name], task.family, tally, keys)
                dropped = dropped_so_far(earlier, name, tally)
                check_examples_left(dataset, name, task.family, tasks[name], dropped)
            counts = write_rows(folder / task_file(name), labelled_parts(task.family), tasks[name])
            tables[name] = counts | tally.counts() | {"published": published}
        # the evaluation parts of all tasks come first, then what is trained on
        by_table = {
            labelled_table(name, part): [row for row in rows if row[-1] == part]
            for part in KEEPS_FIRST
            for name, rows in tasks.items()
        }
        plain = {name: manifest(before / name) for name in order}
        ends = list(accumulate([*map(len, by_table.values()), *(table["documents"] for table in plain.values())]))
        evaluated = ends[2 * len(tasks) - 1]
        shards = [(before / name / shard["file"], shard) for name in order for shard in plain[name]["shards"]]
        firsts = list(accumulate((shard["documents"] for _, shard in shards), initial=ends[len(by_table) - 1]))
        processes = step.processes if sum(table["bytes"] for table in plain.values()) > ALONE_BELOW else 1
        labelled = [(row[0], row[-2], table) for table, rows in by_table.items() for row in rows]
        verdicts = _verdicts(step, labelled, shards, firsts, ends, evaluated, processes)
        evaluation, names = step.unfinished("labelled") / "evaluation.parquet", (*by_table, *order)
        write_rows(evaluation, EVALUATION, labelled[:evaluated])
        units = [
            DeduplicatedShard(
                f"{number:05d}",
                path,
                verdicts,
                number,
                pair,
                evaluation,
                names,
                rules.paragraphs,
                schema_of(settings, path.parent.name),
            )
            for number, ((path, _), pair) in enumerate(zip(shards, pairwise(firsts), strict=True))
        ]
        outputs = iter(run_units(units, step.unfinished("deduplicated"), processes))
        overlapping: list[Path] = []
        for name in order:
            folders = [next(outputs) for _ in plain[name]["shards"]]
            overlapping += [each / LEDGER for each in folders]
            tables[name] = table_from_folders(folders, folder / name)
            if tables[name]["dropped"] and not tables[name]["documents"] and name != UNLABELLED:
                raise DataError(f"{dataset}: every text of {name!r} is also in another table; give it other sources")
        write_ledger(folder / LEDGER, (row for path in overlapping for row in read_rows(path)))
        write_json(folder / COUNTS, history(earlier, "deduplicate", tables))


def shingle_of(settings: DatasetSettings) -> Shingle:
    """Shingles whose sets are compared to detect near-duplicates."""
    return Shingle(unit_of(settings.language), settings.deduplicate.words)


def _verdicts(
    step: DataStep,
    labelled: Sequence[Row],
    shards: Sequence[tuple[Path, dict[str, Any]]],
    firsts: Sequence[int],
    ends: Sequence[int],
    evaluated: int,
    processes: int,
) -> Path:
    """Folder with the verdicts on all texts."""
    rules = step.settings.deduplicate
    bands = Bands.for_threshold(rules.near) if rules.near else None
    units = [
        SketchedShard(f"{number:05d}", path, shard["documents"], shingle_of(step.settings), bands, rules.paragraphs)
        for number, (path, shard) in enumerate(shards)
    ]
    sketches = run_units(units, step.unfinished("sketches"), processes)
    known = step.unfinished("labelled")
    known.mkdir(parents=True, exist_ok=True)
    write_sorted(known, TEXTS_KEYS, _keys(row[0] for row in labelled), np.arange(len(labelled)))
    unit = DuplicateVerdicts(
        "all", (known, *sketches), (0, *firsts), tuple(ends), evaluated, bands, rules.paragraphs is not None
    )
    return run_units([unit], step.unfinished("verdicts"), 1)[0]


@dataclass(frozen=True)
class DeduplicatedShard:
    """Unit of work: write the texts of one shard that are kept, and a ledger of those that copy an evaluation text."""

    name: str
    path: Path
    verdict_folder: Path
    shard: int
    numbers: tuple[int, int]
    """Index of the first text of this shard, and of the next shard."""
    evaluation: Path
    tables: tuple[str, ...]
    least: int | None
    schema: pa.Schema = TEXTS

    def __call__(self, folder: Path) -> None:
        WriteShards(self.name, self.schema, self.rows)(folder)
        write_ledger(folder / LEDGER, self._overlapping())

    def rows(self, tally: Tally) -> Iterator[Row]:
        """Yield the rows that are kept, without their repeated paragraphs."""
        reasons = drop_reasons(self.tables)
        verdicts = np.load(self.verdict_folder / VERDICTS, mmap_mode="r")[slice(*self.numbers)]
        # declared columns belong to the whole text
        again = repeated_paragraphs(self.verdict_folder, self.shard) if self.schema == TEXTS else {}
        for number, (row, verdict) in enumerate(zip(read_rows(self.path), verdicts.tolist(), strict=True)):
            if verdict != KEPT:
                tally.drop(reasons[verdict], row[0], row[1])
            elif number in again:
                text = without_paragraphs(row[0], again[number])
                if len(text) < (self.least or 1):
                    tally.drop("repeated paragraphs", row[0], row[1])
                else:
                    tally.change("repeated paragraphs", len(again[number]))
                    yield (text, *row[1:])
            else:
                yield row

    def _overlapping(self) -> Iterator[Row]:
        copies = np.load(self.verdict_folder / COPIES)
        begin, end = np.searchsorted(copies[:, 0], self.numbers)
        same = {number - self.numbers[0]: other for number, other in copies[begin:end].tolist()}
        if not same:
            return
        table, evaluation = self.path.parent.name, list(read_rows(self.evaluation))
        for number, row in enumerate(read_rows(self.path)):
            if number in same:
                text, source, part = evaluation[same[number]]
                yield LedgerEntry(excerpt(row[0]), table, row[1], part, source, "exact", 1.0, excerpt(text), "drop").row


def unique_examples(rows: list[Row], family: TaskFamily, tally: Tally, keys: ExampleKeys | None = None) -> list[Row]:
    """Rows of the task without duplicates, in order. `keys` are those of the rows, where they are known.

    Copies in one part with different answers are all dropped if the answers are labels; if they are free text, as in
    translation, the first is kept.
    """
    keys = keys or example_keys(rows, family)
    texts = keys.texts.tolist()
    first: dict[int, str] = {}
    kept = np.zeros(len(rows), np.bool_)
    has_labels = any(family.labels([example]) for example in ExampleRows(family, rows))
    for part in KEEPS_FIRST:
        contradictory = set(keys.of_part(part).contradictory().tolist()) if has_labels else set()
        for number in np.flatnonzero(keys.parts == keys.names.index(part)).tolist():
            row, text = rows[number], texts[number]
            if text in contradictory:
                tally.drop(f"{part}: {OTHER_LABEL}", row[0], row[-2])
            elif text in first:
                tally.drop(f"{part}: {SAME_TEXT}{first[text]}", row[0], row[-2])
            else:
                first[text] = part
                kept[number] = True
    return [row for row, keep in zip(rows, kept.tolist(), strict=True) if keep]


def example_keys(rows: list[Row], family: TaskFamily) -> ExampleKeys:
    """Keys of the texts, answers and parts of a labelled set."""
    answers = (repr([one[name] for name in family.target]) for one in ExampleRows(family, rows))
    return ExampleKeys.of(_keys(row[0] for row in rows), answers, (row[-1] for row in rows), PARTS)


def _keys(texts: Iterable[str]) -> Any:
    """[texts, 2] Keys that equal texts share."""
    return np.concatenate([np.empty((0, 2), np.uint64), *(Letters.of(batch).text_keys() for batch in batches(texts))])


if __name__ == "__main__":
    run_step(deduplicate)
