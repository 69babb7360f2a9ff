"""Inputs of `cursus export`: the float32 model folder behind a name, and real texts from its lineage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.corpora.shards.digests import dvc_digest
from pipelines.errors import DataError
from pipelines.lineage.provenance import DataSource, Provenance
from pipelines.lineage.store import Store
from pipelines.models.untrusted import refuse_unsafe
from pipelines.task_families.labelled_tables import MAIN, tables_of_task, tasks_in
from tasks.datasets.planning import store_folder
from tasks.models.ancestry import ancestry, label, resolve
from tasks.models.reference import names_folder

if TYPE_CHECKING:
    from pipelines.serving.exporting.export import ExportData
    from pipelines.task_families import Row

PLAIN = ("task_text", "domain", "general")
"""Tables of plain text, closest to the task first."""
MAX_ROWS = 2000
"""Maximum number of rows read from a table of plain text."""


@dataclass(frozen=True)
class Source:
    """A model to export."""

    folder: Path
    """Folder with float32 weights in safetensors."""
    title: str
    """Name shown in messages about the export."""
    fingerprint: str
    """Empty for a folder that is not an artifact."""
    tables: Mapping[str, DataSource]
    """All tables that the model or an ancestor read, by name; the labelled ones of its task as `train`, …."""


def source_of(root: Path, model: str, task: str | None, scratch: Path) -> Source:
    """The folder that `model` names: a path, or an artifact; for an 8-bit artifact, the one it was converted from.

    Of a model of several tasks, the one that answers `task`, written into `scratch`. Raises the errors of `resolve`,
    and RecipeError for a folder that holds code or pickles, or where no or several tasks match.
    """
    if names_folder(model):
        from pipelines.models.oversized import refuse_oversized

        refuse_unsafe(Path(model))
        refuse_oversized(Path(model))
        return _of_task(Source(Path(model), model, "", {}), task, scratch)
    store = Store(store_folder(root))
    artifact = store.find(resolve(root, store, model)[1])
    records = ancestry(store, artifact.fingerprint)
    record = records[artifact.fingerprint]
    while not any(store.folder(record.fingerprint).glob("*.safetensors")) and "start" in record.parents:
        record = records[record.parents["start"]]
    tables: dict[str, DataSource] = {}
    for ancestor in records.values():  # parents before children: the closest ancestor's table wins
        tables |= ancestor.data
    return _of_task(Source(store.folder(record.fingerprint), _title(record), record.fingerprint, tables), task, scratch)


def _of_task(source: Source, task: str | None, scratch: Path) -> Source:
    """`source` as a model of one task, with that task's tables."""
    from pipelines.models.extracting import extract_task, record_of_lines

    record = record_of_lines(source.folder)
    line = None if record is None else record.line_for(task, source.folder)
    if record is None or line is None:
        own = [name for name in tasks_in(source.tables) if name != MAIN]
        tables = tables_of_task(source.tables, own[0]) if len(own) == 1 else source.tables
        return replace(source, tables=tables)
    folder = extract_task(source.folder, line, scratch / "one")
    tables = tables_of_task(source.tables, record.lines[line].corpus[0])
    return replace(source, folder=folder, title=f"{source.title}, {line}", tables=tables)


def material_of(root: Path, source: Source, texts: Path | None) -> ExportData:
    """Real texts for `source`: the lines of `texts`, or else the tables of its lineage.

    Raises DataError when there are neither.
    """
    from pipelines.serving.exporting.export_data import alternating, export_data, task_of

    task = task_of(source.folder)
    if texts is not None:
        return export_data(source.folder, f"{texts.name}", *alternating(_lines(source.folder, texts)))
    if task is not None and (test := _test_table(root, source)) is not None:
        learned = source.tables["train"]
        train, tested = _table(root / learned.path), _table(test)
        return export_data(source.folder, f"the test table of {learned.dataset}", train, tested, tested)
    for name in PLAIN:
        table = source.tables.get(name)
        if task is None and table is not None and (root / table.path).exists():
            rows = _table(root / table.path, MAX_ROWS)
            return export_data(source.folder, f"the table {name} of {table.dataset}", *alternating(rows))
    raise DataError(
        f"{source.title}: no table of its lineage exists any more, so there are no texts to compare answers on; pass "
        "some with --texts FILE, one per line"
    )


def _title(record: Provenance) -> str:
    return f"{label(record)} {record.fingerprint[:8]}"


def _test_table(root: Path, source: Source) -> Path | None:
    """The test table next to the recorded training table; None when the training table is missing or has changed."""
    train = source.tables.get("train")
    if train is None or not (root / train.path).exists() or dvc_digest(root / train.path) != train.digest:
        return None
    before, _, after = (root / train.path).name.rpartition("train")
    test = (root / train.path).with_name(f"{before}test{after}")
    return test if test.exists() else None


def _table(path: Path, most: int | None = None) -> Sequence[Row]:
    import pyarrow.dataset

    table = pyarrow.dataset.dataset(path)
    rows: list[Row] = (table.to_table() if most is None else table.head(most)).to_pylist()
    return rows


def _lines(folder: Path, texts: Path) -> Sequence[Row]:
    """The examples in a file: one text per line, or, for tasks with more than one text, JSON with the task's
    columns."""
    from pipelines.serving.answering.checked_examples import checked_examples
    from pipelines.serving.exporting.export_data import task_of

    lines = text_lines(texts)
    task = task_of(folder)
    if task is None or task.family.is_single_text:
        return [{"text": line} for line in lines if line.strip()]
    return list(checked_examples(task.family, lines, texts))


def text_lines(texts: Path) -> Iterator[str]:
    """The lines of a file in UTF-8, one after the other. Raises DataError, with the file, for one that is none."""
    try:
        with texts.open(encoding="utf-8-sig") as file:
            yield from (line.rstrip("\n") for line in file)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{texts}: cannot be read as text ({error}); pass a file with one text per line") from None
