"""The lineage of a model as text: from the tables it was made of, through every stage, to the model itself.

    data       docs/general                 md5 1a2b3c4d   61,234 rows   data/prepared/docs/general

    models                     kind       reads         tokens  metric      when (UTC)   took
    general          3f2a9c01  pretrain   docs/general  2.0M    loss 4.200  03-01 11:00  3m12s
    └─ task          77ab01c2  …
       ├─ classify   9e81d004  …
       └─ small      0c4422aa  …  ↗ teacher classify 9e81d004

Each model appears once, below the model it started from, or that it reads; parents that it did not start from are
listed on a line of their own, after ↗.
Everything is read from the store's records; MLflow is only queried to resolve registered names.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pipelines.corpora.settings.dataset import FILE, load_settings
from pipelines.corpora.shards.digests import dvc_digest
from pipelines.errors import CursusError
from pipelines.lineage.provenance import DataSource, Provenance
from pipelines.lineage.store import Store
from pipelines.messages.translation import message
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import read_as
from tasks.models.default import CHAMPION, champion_of, executions, latest_model

WIDTH = 120
SHORT = 8
"""Digits shown of a fingerprint or a digest: enough to refer to it in a command."""
HEXADECIMAL = re.compile(r"[0-9a-f]{4,64}")
KEY_FIGURES = ("mean", "accuracy", "agreement", "loss")
"""The key figure of a step is the first of its task family's metrics, or else of these, that the step has, validation
before test before training. `mean` is that over the tasks of a stage with several."""
SPLITS = ("validation/", "test/", "", "train/")


@dataclass(frozen=True)
class AncestryRow:
    """One row of the tree: its first column with the drawn branches, the other columns as text."""

    tree: str
    cells: tuple[str, ...] = ()
    note: str = ""
    """Further parents, shown on the lines below."""
    rail: str = ""
    """Prefix that continues the tree's branches on those lines."""


def lineage(root: Path, store: Store, reference: str) -> str:
    """Render the ancestry of `reference` in lines of at most 120 columns.

    A reference is a stage of the latest execution (`small`, `classify@1`), a fingerprint or its first digits, a
    registered model (`reviews-encoder`, `reviews-encoder@candidate`, `models:/reviews-encoder/1`), or a dataset with an
    alias (`reviews@champion`, `reviews@candidate`). Raises CursusError for an unknown reference, StoreError for an
    ambiguous prefix.
    """
    title, fingerprint = resolve(root, store, reference)
    records = ancestry(store, fingerprint)
    subject = records[fingerprint]
    heading = f"{title}{label(subject)} {fingerprint}"
    tables = {
        source.digest + table: (table, source) for step in records.values() for table, source in step.data.items()
    }
    lines = [heading, ""]
    if tables:
        lines += [message("data"), *_table_lines(root, tables), ""]
    return "\n".join([*lines, *_tree_lines(records, fingerprint)]) + "\n"


def resolve(root: Path, store: Store, reference: str) -> tuple[str, str]:
    """Resolve `reference` to a title prefix (empty unless it is a registered model) and a fingerprint."""
    latest = next(iter(executions(root)), None)
    steps = latest["steps"] if latest is not None else []
    stage, _, seed = reference.partition("@")
    for step in steps:
        if step["stage"] == stage and (not seed or str(step["seed"]) == seed):
            return "", str(step["fingerprint"])
    if HEXADECIMAL.fullmatch(reference):
        return "", store.find(reference).fingerprint
    if seed and (chosen := of_dataset(root, store, stage, seed)) is not None:
        return chosen
    from tasks.tracking.recorder import Recorder
    from tasks.tracking.registry import Registry

    try:
        name, fingerprint = Registry(Recorder(root)).resolve(reference)
    except CursusError as error:
        known = ", ".join(dict.fromkeys(str(step["stage"]) for step in steps)) or "none yet: `cursus run`"
        raise CursusError(f"{error} Stages of the latest execution: {known}.") from None
    return f"{name} = ", fingerprint


def of_dataset(root: Path, store: Store, dataset: str, alias: str) -> tuple[str, str] | None:
    """Resolve `dataset@alias`; None where params.yaml has no such dataset.

    Raises CursusError where the dataset has no champion, or no model that is registered under that alias.
    """
    if not (root / FILE).exists() or dataset not in load_settings(root):
        return None
    if alias == CHAMPION:
        champion = champion_of(store, dataset)
        if champion is None:
            raise CursusError(f"no model of the dataset {dataset!r} is champion; `cursus promote` chooses one")
        return f"{champion.why} = ", champion.fingerprint
    from tasks.tracking.names import answering_name
    from tasks.tracking.recorder import Recorder
    from tasks.tracking.registry import Registry

    latest = Provenance.read(store.folder(latest_model(root, dataset).fingerprint))
    name, fingerprint = Registry(Recorder(root)).resolve(f"{answering_name(root, store, latest)}@{alias}")
    return f"{name} = ", fingerprint


def ancestry(store: Store, fingerprint: str) -> dict[str, Provenance]:
    """Records of an artifact and of all its ancestors, parents before children. Raises StoreError for a missing
    record."""
    records: dict[str, Provenance] = {}

    def visit(name: str) -> None:
        if name not in records:
            record = Provenance.read(store.folder(name))
            for parent in record.parents.values():
                visit(parent)
            records[name] = record

    visit(fingerprint)
    return records


def _table_lines(root: Path, tables: Mapping[str, tuple[str, DataSource]]) -> list[str]:
    rows = []
    for table, source in tables.values():
        name = f"{source.dataset}/{table}"
        rows.append((name, f"md5 {source.digest[:SHORT]}", _count(root / source.path, source.digest), source.path))
    return ["  " + line for line in _columns(rows)]


def _count(path: Path, digest: str) -> str:
    """The number of rows, if the table still exists and is unchanged."""
    if not path.exists():
        return message("no longer exists")
    if dvc_digest(path) != digest:
        return message("changed since")
    import pyarrow.dataset

    return message("{rows:,} rows", rows=pyarrow.dataset.dataset(path).count_rows())


def _tree_lines(records: Mapping[str, Provenance], subject: str) -> list[str]:
    children: dict[str, list[str]] = {}
    roots = []
    for name, record in records.items():
        parent = _main_parent(record, records)
        if parent is None:
            roots.append(name)
        else:
            children.setdefault(parent, []).append(name)
    heads = (message("reads"), message("tokens"), message("metric"), message("when (UTC)"), message("took"))
    header = AncestryRow(message("models"), ("", message("kind"), *heads))
    rows = [header, *(row for name in roots for row in _branch(name, records, children, subject, "", ""))]
    aligned = _columns([(row.tree, *row.cells) for row in rows])
    lines = []
    for row, line in zip(rows, aligned, strict=True):
        lines.append(line)
        if row.note:
            rail = row.rail + "  ↗ "
            lines += textwrap.wrap(row.note, WIDTH, initial_indent=rail, subsequent_indent=row.rail + "    ")
    return lines


def _branch(
    name: str,
    records: Mapping[str, Provenance],
    children: Mapping[str, list[str]],
    subject: str,
    joint: str,
    rail: str,
) -> Iterator[AncestryRow]:
    record = records[name]
    below = children.get(name, [])
    others = [
        f"{role.removeprefix('subject:') if role.startswith('subject:') else f'{role} {label(records[parent])}'} "
        f"{parent[:SHORT]}"
        for role, parent in record.parents.items()
        if parent != _main_parent(record, records) or role.startswith("features")
    ]
    if record.identity.get("untrained"):
        others.insert(0, message("random weights: only the architecture and the vocabulary are the parent's"))
    judges = message("judges ") if record.judges else ""
    mark = " ◀" if name == subject else ""
    yield AncestryRow(
        joint + label(record) + mark,
        _cells(record),
        note=judges + ", ".join(others) if others else "",
        rail=rail + ("│" if below else " "),
    )
    for child in below:
        last = child == below[-1]
        yield from _branch(
            child, records, children, subject, rail + ("└─ " if last else "├─ "), rail + ("   " if last else "│  ")
        )


def _main_parent(record: Provenance, records: Mapping[str, Provenance]) -> str | None:
    """The parent below which a step is drawn; None for a step that starts from nothing, or evaluates several models."""
    if record.judges:
        return None
    return record.parents.get("start") or next(
        (parent for parent in record.parents.values() if parent in records), None
    )


def label(record: Provenance) -> str:
    """The name of a step in lineages: `classify@1`, or `general`."""
    return f"{record.stage}@{record.seed}" if record.kind == "finetune" or record.seed else record.stage


def _cells(record: Provenance) -> tuple[str, ...]:
    started = datetime.fromisoformat(record.environment.started)
    return (
        record.fingerprint[:SHORT],
        record.kind,
        ", ".join(dict.fromkeys(read_as(table) for table in record.data)) or "-",
        _short_number(int(record.result.get("tokens", 0))),
        key_figure(record.result.get("metrics", {}), record.identity.get("family")),
        f"{started:%m-%d %H:%M}",
        _duration(record.environment.seconds),
    )


def key_figure(metrics: Mapping[str, Any], family: Mapping[str, Any] | None) -> str:
    """The key figure of a step's `metrics`, such as `f1 0.612`; `family` is the one in its record, None for plain
    text."""
    for figure in (*(TaskFamily.model_validate(family).metrics if family else ()), *KEY_FIGURES):
        for split in SPLITS:
            value = metrics.get(split + figure)
            if isinstance(value, (int, float)):
                # a metric without a split prefix is measured on validation
                return f"{split.replace('validation/', '')}{figure} {value:.3f}"
    return "-"


def _short_number(value: int) -> str:
    for unit, size in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if value >= size:
            return f"{value / size:.1f}{unit}"
    return str(value) if value else "-"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Format rows with aligned columns, two spaces apart, truncated to the page width."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        lines.append(line if len(line) <= WIDTH else line[: WIDTH - 1] + "…")
    return lines
