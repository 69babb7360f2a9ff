"""Step `split`: write the tables that training reads, the held-out general text, and a summary of the preparation.

Tables of plain text are mixed from their sources according to `mixtures`, in a pseudo-random order that depends on the
texts alone: any prefix is a random sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.corpora.leaks.leaked_rows import with_leaked_rows
from pipelines.corpora.settings.mixture import members_of
from pipelines.corpora.settings.tables import all_tables, named_tables, schema_of, task_file
from pipelines.corpora.settings.task import Task, has_classes
from pipelines.corpora.shards.digests import write_digests
from pipelines.corpora.shards.held_out import HELD_OUT, held_out
from pipelines.corpora.shards.tables import TEXTS, ExampleRows, Row, example_of, labelled, origin, read_rows, write_rows
from pipelines.corpora.shards.writing import read_json, replaced_atomically, write_json
from pipelines.corpora.steps.mixture import Mixture
from pipelines.corpora.steps.select import SELECTION
from pipelines.corpora.steps.shuffle import shuffle_tables
from pipelines.corpora.steps.step import COUNTS, DataStep, begin, run_step, table_path
from pipelines.corpora.steps.task_text import LabelledDraw, divide_training, draw_examples
from pipelines.lineage.disk import atomic_write
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, NAMED, PARTS, labelled_table

EXAMPLES_SHOWN = 3
"""Training examples in the summary."""
_TOTALS = ("documents", "characters", "bytes")


def split(dataset: str, root: Path) -> None:
    """Write the tables and summary.json. Raises DataError when a class has too few examples left."""
    step = begin("split", dataset, root, before=("decontaminated", "selected"))
    settings, home = step.settings, step.home
    tasks = {name: list(read_rows(home / "decontaminated" / task_file(name))) for name in settings.labelled}
    examples = {
        name: {part: [row for row in rows if row[-1] == part] for part in PARTS} for name, rows in tasks.items()
    }
    drawn = draw_examples(tasks[MAIN], settings, home / "decontaminated" / "unlabelled")
    for name, rows in tasks.items():
        examples[name]["train"] = drawn.labelled if name == MAIN else divide_training(rows, settings.labelled[name])[0]
    last, kept_back = held_out(home / "decontaminated" / "general", step.unfinished(HELD_OUT), step.processes)
    (home / NAMED).mkdir(parents=True, exist_ok=True)
    counts, sources = _corpora(step, drawn, last)
    for task, parts in examples.items():
        for part, part_rows in parts.items():
            name = labelled_table(task, part)
            schema = with_leaked_rows(labelled(settings.labelled[task].family), home / "decontaminated", name)
            with atomic_write(table_path(home, name)) as temporary:
                counts[name] = write_rows(temporary, schema, (row[:-1] for row in part_rows))
    with atomic_write(table_path(home, HELD_OUT)) as temporary:
        counts[HELD_OUT] = write_rows(temporary, TEXTS, kept_back)
    summary = {
        "dataset": dataset,
        "language": settings.language,
        **_described(settings.main, examples[MAIN]),
        "tables": {name: {key: counts[name][key] for key in _TOTALS} for name in (*all_tables(settings), HELD_OUT)},
        "task_text_from": _task_text_from(step, drawn),
        "mixtures": sources,
        "selection": read_json(home / "selected" / SELECTION),
        "steps": read_json(home / "selected" / COUNTS),
    }
    if settings.tasks:
        own = {name: examples[MAIN if name == settings.main_name else name] for name in settings.tasks}
        summary["tasks"] = {name: _described(task, own[name]) for name, task in settings.tasks.items()}
    if settings.corpora:
        summary["corpora"] = {name: {"columns": corpus.columns} for name, corpus in settings.corpora.items()}
    write_digests(home / NAMED, {name: table_path(home, name) for name in named_tables(settings)})
    write_json(home / "summary.json", summary)
    step.finished()


def _described(task: Task, examples: Mapping[str, list[Row]]) -> dict[str, Any]:
    """Summary of a task: its family, its labels, examples of each label, and a few examples."""
    family, train = task.family, examples["train"]
    return {
        "family": family.name,
        "labels": family.labels(ExampleRows(family, train)),
        "examples_of_label": {part: _by_label(some, family) for part, some in examples.items()},
        "shown": [
            {name: value[:300] if isinstance(value, str) else value for name, value in example_of(family, row).items()}
            | {origin(family): row[-2]}
            for row in train[:EXAMPLES_SHOWN]
        ],
    }


def _corpora(step: DataStep, drawn: LabelledDraw, held_out: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the tables of plain text. Returns their manifests, and the report of each source."""
    before, settings = step.home / "decontaminated", step.settings
    tables = {name: [before / name] for name in ("general", "domain", *settings.corpora)}
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
                parts, folder, step.unfinished_table(name), step.processes, mixture, last, schema_of(settings, name)
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
