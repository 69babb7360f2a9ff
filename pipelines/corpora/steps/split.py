"""Step `split`: write the tables that training reads, the held-out general text, and a summary of the preparation.

Tables of plain text are mixed from their sources according to `mixtures`, in a pseudo-random order that depends on the
texts alone: any prefix is a random sample.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pipelines.corpora.leaks.leaked_rows import with_leaked_rows
from pipelines.corpora.settings.mixture import members_of
from pipelines.corpora.settings.task import has_classes
from pipelines.corpora.shards.held_out import HELD_OUT, held_out
from pipelines.corpora.shards.tables import TEXTS, Row, example_of, labelled, origin, read_rows, write_rows
from pipelines.corpora.shards.writing import read_json, replaced_atomically, write_json
from pipelines.corpora.steps.collect import check_labels
from pipelines.corpora.steps.mixture import Mixture
from pipelines.corpora.steps.select import SELECTION
from pipelines.corpora.steps.shuffle import shuffle_tables
from pipelines.corpora.steps.step import COUNTS, LABELLED, TABLES, DataStep, begin, run_step, table_path
from pipelines.corpora.steps.task_text import LabelledDraw, draw_examples
from pipelines.errors import DataError
from pipelines.lineage.disk import atomic_write
from pipelines.task_families import TaskFamily

EXAMPLES_SHOWN = 3
"""Training examples in the summary."""
_TOTALS = ("documents", "characters", "bytes")


def split(dataset: str, root: Path) -> None:
    """Write the tables and summary.json. Raises DataError when a class or the task has too few examples left."""
    step = begin("split", dataset, root, before=("decontaminated", "selected"))
    family, home = step.settings.main.family, step.home
    rows = list(read_rows(home / "decontaminated" / "task.parquet"))
    examples = {part: [row for row in rows if row[-1] == part] for part in LABELLED}
    check_labels({part: [example_of(family, row) for row in part_rows] for part, part_rows in examples.items()}, family)
    for part in ("validation", "test"):
        if not examples[part]:
            raise DataError(f"{dataset}: the {part} split has no examples left; provide more")
    drawn = draw_examples(rows, step.settings, home / "decontaminated" / "unlabelled")
    examples["train"] = drawn.labelled
    last, kept_back = held_out(home / "decontaminated" / "general", step.unfinished(HELD_OUT), step.processes)
    counts, sources = _corpora(step, drawn, last)
    for name, part_rows in examples.items():
        schema = with_leaked_rows(labelled(family), home / "decontaminated", name)
        with atomic_write(table_path(home, name)) as temporary:
            counts[name] = write_rows(temporary, schema, (row[:-1] for row in part_rows))
    with atomic_write(table_path(home, HELD_OUT)) as temporary:
        counts[HELD_OUT] = write_rows(temporary, TEXTS, kept_back)
    summary = {
        "dataset": dataset,
        "language": step.settings.language,
        "family": family.name,
        "labels": family.labels([example_of(family, row) for row in drawn.labelled]),
        "tables": {name: {key: counts[name][key] for key in _TOTALS} for name in (*TABLES, HELD_OUT)},
        "examples_of_label": {name: _by_label(part_rows, family) for name, part_rows in examples.items()},
        "task_text_from": _task_text_from(step, drawn),
        "mixtures": sources,
        "selection": read_json(home / "selected" / SELECTION),
        "shown": [
            {name: value[:300] if isinstance(value, str) else value for name, value in example_of(family, row).items()}
            | {origin(family): row[-2]}
            for row in drawn.labelled[:EXAMPLES_SHOWN]
        ],
        "steps": read_json(home / "selected" / COUNTS),
    }
    write_json(home / "summary.json", summary)
    step.finished()


def _corpora(step: DataStep, drawn: LabelledDraw, held_out: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the tables of plain text. Returns their manifests, and the report of each source."""
    before, settings = step.home / "decontaminated", step.settings
    tables = {"general": [before / "general"], "domain": [before / "domain"]}
    rest = drawn.write(step.unfinished("own"))
    own = [before / "unlabelled", rest] if settings.task_text.own else []
    tables["task_text"] = [*own, step.home / "selected" / "task_text"]
    manifests: dict[str, Any] = {}
    reports: dict[str, Any] = {}
    for name, parts in tables.items():
        chosen = settings.mixtures.by_corpus().get(name)
        mixture = None
        if chosen is not None:
            mixture = Mixture(chosen, members_of(chosen, getattr(settings, name), settings.language))
        with replaced_atomically(table_path(step.home, name)) as folder:
            folder.rmdir()
            last = held_out if name == "general" else -1
            manifests[name], reports[name] = shuffle_tables(
                parts, folder, step.unfinished(name), step.processes, mixture, last
            )
    return manifests, reports


def _task_text_from(step: DataStep, drawn: LabelledDraw) -> str:
    """Description of the text for task adaptation."""
    own = "unlabelled texts" if drawn.unlabelled else "training texts"
    if step.settings.task_text.selection is None:
        return own
    return f"{own} and texts of the domain" if step.settings.task_text.own else "texts of the domain"


def _by_label(rows: list[Row], family: TaskFamily) -> dict[str, int]:
    """Number of rows of each class; empty for families without classes."""
    if not has_classes(family):
        return {}
    return dict(sorted(Counter(example_of(family, row)["label"] for row in rows).items()))


if __name__ == "__main__":
    run_step(split)
