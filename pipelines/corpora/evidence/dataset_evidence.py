"""Evidence of a prepared dataset for its validation, gathered in units of work.

files ─▶ MeasuredFile ─▶ RepeatedKeys ─▶ EvidenceOfFile ─▶ Study ─▶ frames, profile
         34 bytes a row   a range of      representative    of a sample
         on disk          keys in memory  rows
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.corpora.engines.work import ALONE_BELOW, run_units
from pipelines.corpora.evidence.measures import MeasuredFile
from pipelines.corpora.evidence.repeats import KeyFile, RepeatedKeys, ranges_of
from pipelines.corpora.evidence.rows import FailureLimits, FileEvidence
from pipelines.corpora.evidence.study import Study
from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.settings.tables import TASK_TEXT, all_tables, columns_of, family_of, text_tables
from pipelines.corpora.shards.folders import table_files
from pipelines.corpora.shards.tables import labelled, origin
from pipelines.corpora.shards.writing import read_json
from pipelines.corpora.steps.step import DataStep, table_path
from pipelines.lineage.fingerprint import digest_file
from pipelines.task_families.labelled_tables import MAIN, labelled_table, task_and_part

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class DatasetEvidence:
    """Folders with the evidence of each table, file by file, and with the statistics of the sample."""

    evidence: Mapping[str, tuple[Path, ...]]
    study: Path

    def totals(self, table: str) -> dict[str, Any]:
        """Exact documents, characters, lengths by bin and kinds (of answers, or collections) of a table."""
        counts: Counter[str] = Counter()
        lengths: Counter[str] = Counter()
        kinds: Counter[str] = Counter()
        for folder in self.evidence[table]:
            part = read_json(folder / "totals.json")
            counts.update(documents=part["documents"], characters=part["characters"])
            lengths.update(part["lengths"])
            kinds.update(part["kinds"])
        return {
            "documents": counts["documents"],
            "characters": counts["characters"],
            "lengths": dict(sorted(lengths.items(), key=lambda pair: int(pair[0]))),
            "kinds": dict(sorted(kinds.items())),
        }

    def frame(self, table: str) -> DataFrame:
        """Representative rows of a table: its own columns, the measures, and the study's columns for sampled rows."""
        import pandas as pd
        import pyarrow as pa
        import pyarrow.parquet as pq

        parts = [pq.read_table(folder / "rows.parquet") for folder in self.evidence[table]]
        numbered = [
            part.append_column("file_number", pa.array([n] * len(part), pa.int32())) for n, part in enumerate(parts)
        ]
        rows = pa.concat_tables(numbered).to_pandas()
        merged: pd.DataFrame = rows.merge(
            pq.read_table(self.study / f"{table}.parquet").to_pandas(), on=["file_number", "row_number"], how="left"
        )
        return merged


def gather_evidence(step: DataStep, summary: Mapping[str, Any]) -> DatasetEvidence:
    """Measure all tables of a prepared dataset; finished units of work are not computed again."""
    settings, tables = step.settings, all_tables(step.settings)
    # by rank, which says how near they are to the test: test tables come first
    ranked = tables[::-1]
    files = {table: table_files(table_path(step.home, table)) for table in tables}
    size = sum(path.stat().st_size for paths in files.values() for path in paths)
    # compressed text takes three times its size in memory
    processes = step.processes if 3 * size > ALONE_BELOW else 1
    home = step.unfinished(_content(step.home, tables))
    all_files = [(table, number, path) for table in ranked for number, path in enumerate(files[table])]
    of_family = {table: family_of(settings, table) for table in tables}
    labels = {table: _labels(summary, settings, table) for table in tables}
    against = {table: tuple(table_path(step.home, one) for one in _against(settings, table)) for table in tables}
    measured = run_units(
        [
            MeasuredFile(
                f"measures-{table}-{number:05d}",
                path,
                of_family[table],
                labels[table],
                against[table],
                settings.decontaminate.words,
                tuple(columns_of(settings, table).items()),
            )
            for table, number, path in all_files
        ],
        home,
        processes,
    )
    ranks = {table: rank for rank, table in enumerate(ranked)}
    shared_ranks = {table: frozenset(ranks[one] for one in _sharing(settings, table)) for table in tables}
    if summary["task_text_from"].startswith("training texts"):
        shared_ranks[TASK_TEXT] |= {ranks["train"]}
    if summary["selection"]:
        shared_ranks["domain"] = frozenset({ranks["task_text"]})  # selected domain texts are also task text, on purpose
    repeated = {
        table: tuple((name, member["most_copies"]) for member in members for name in member["collections"])
        for table, members in summary.get("mixtures", {}).items()
    }
    keys = tuple(
        KeyFile(folder, ranks[table], shared_ranks.get(table, frozenset()))
        for (table, _, _), folder in zip(all_files, measured, strict=True)
    )
    rows = [_rows_in(path) for _, _, path in all_files]
    parts = ranges_of(sum(rows))
    repeats = run_units([RepeatedKeys(keys, part, parts) for part in range(parts)], home, processes)
    documents = {
        table: sum(count for (of, _, _), count in zip(all_files, rows, strict=True) if of == table) for table in tables
    }
    limits = FailureLimits(settings.clean.max_characters, settings.decontaminate.overlap)
    evidence = run_units(
        [
            FileEvidence(
                f"evidence-{table}-{number:05d}",
                path,
                folder,
                tuple(repeats),
                index,
                ranked,
                documents[table],
                len(files[table]),
                limits,
                of_family[table],
                labels[table],
                repeated.get(table, ()),
            )
            for index, ((table, number, path), folder) in enumerate(zip(all_files, measured, strict=True))
        ],
        home,
        processes,
    )
    of_table = {
        table: tuple(folder for (of, _, _), folder in zip(all_files, evidence, strict=True) if of == table)
        for table in tables
    }
    samples = tuple((table, tuple(folder / "sample.parquet" for folder in of_table[table])) for table in tables)
    unit = Study(samples, settings.language, settings.quality.tokenizer, text_tables(settings))
    study = run_units([unit], home, 1)
    return DatasetEvidence(of_table, study[0])


def _labels(summary: Mapping[str, Any], settings: DatasetSettings, table: str) -> tuple[str, ...]:
    """Labels of the training examples of the table's task; none for plain text."""
    known = task_and_part(table)
    if known is None:
        return ()
    return tuple(summary["labels"] if known[0] == MAIN else summary["tasks"][known[0]]["labels"])


def _against(settings: DatasetSettings, table: str) -> tuple[str, ...]:
    """Tables that no text of `table` may overlap: evaluation tables of all tasks for what is trained on, else the test
    table of its own task."""
    task, part = task_and_part(table) or (MAIN, "train")
    if part == "test":
        return ()
    if part == "validation":
        return (labelled_table(task, "test"),)
    return tuple(labelled_table(name, one) for name in settings.labelled for one in ("validation", "test"))


def _sharing(settings: DatasetSettings, table: str) -> list[str]:
    """Tables that may have the same texts as `table`: of other tasks, unless one is for training and the other for
    evaluation."""
    # the text of the main task holds training texts of it
    task, part = (MAIN, "train") if table == TASK_TEXT else task_and_part(table) or (MAIN, "")
    others = [name for name in settings.labelled if name != task] if part else []
    parts = ("train",) if part == "train" else ("validation", "test")
    return [labelled_table(name, one) for name in others for one in parts]


def _content(home: Path, tables: Sequence[str]) -> str:
    """Digest of the content of all tables; shards are identified by the sha256 in their manifest."""
    digests = {}
    for table in tables:
        path = table_path(home, table)
        digests[table] = digest_file(path / "_manifest.json" if path.is_dir() else path)
    return sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()[:16]


def _rows_in(path: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def expected_columns(table: str, settings: DatasetSettings) -> dict[str, str]:
    """Columns that a table must have → their types, as a task family names them."""
    family = family_of(settings, table)
    if family is None:
        return {"text": "string", "source": "string", "collection": "string"} | columns_of(settings, table)
    kinds = {"text": "string"} | family.columns | {origin(family): "string"}
    return {name: kinds[name] for name in labelled(family).names}
