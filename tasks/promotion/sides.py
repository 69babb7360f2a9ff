"""The two models of a contest: what each answers, what it was trained on, and whether they can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import DataError
from pipelines.judging.gate.evidence import CANDIDATE
from pipelines.lineage.provenance import DataSource, Provenance
from pipelines.lineage.store import Store
from pipelines.models.extracting import answering_lines
from pipelines.models.opening import CONFIG_KEY
from pipelines.networks.folder import read_json
from pipelines.recipe.final_models import ANSWERING_KINDS
from pipelines.serving.answering.examples import family_of
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import labelled_table, tasks_in
from tasks.models.ancestry import ancestry, label


@dataclass(frozen=True)
class AnsweredTask:
    """A task that a model answers."""

    name: str
    """The name that its dataset has for it."""
    family: TaskFamily
    labels: tuple[str, ...]
    """The classes or tags of the model, sorted; none for free-text answers."""
    train: DataSource
    """The labelled table that the model was trained on."""

    def table(self, part: str) -> str:
        """Name of the table with one part of the task."""
        return labelled_table(self.name, part)


@dataclass(frozen=True)
class Side:
    """One of the models of a contest."""

    record: Provenance
    folder: Path
    lineage: Mapping[str, Provenance]
    """Records of the model and its ancestors, parents first."""
    tasks: Mapping[str, AnsweredTask]
    """The tasks that it answers, by name; most models answer one."""

    @property
    def name(self) -> str:
        return f"{self.record.recipe}/{label(self.record)} ({self.record.fingerprint[:8]})"

    @property
    def dataset(self) -> str:
        return next(iter(self.tasks.values())).train.dataset


def open_side(store: Store, fingerprint: str) -> Side:
    """The model with this fingerprint. Raises DataError if it answers no task, or one of its tasks in two ways."""
    lineage = ancestry(store, fingerprint)
    record, folder = lineage[fingerprint], store.folder(fingerprint)
    name = f"{record.recipe}/{label(record)} ({fingerprint[:8]})"
    if record.kind not in ANSWERING_KINDS:
        raise DataError(f"{name} answers no task and cannot be evaluated; name the model that was fine-tuned from it")
    # parents come first: the table of the nearest stage counts
    learned = [
        (task, one.data[table])
        for one in lineage.values()
        for task in tasks_in(one.data)
        if (table := labelled_table(task, "train")) in one.data
    ]
    if not learned:
        raise DataError(f"{name}: its lineage names no labelled table")
    return Side(record, folder, lineage, {task.name: task for task in _tasks(folder, name, learned)})


def refuse_incomparable(candidate: Side, champion: Side, alias: str) -> None:
    """Raise DataError for two models that no test table can compare."""
    pair = f"the candidate {candidate.name} and the {alias} {champion.name} cannot be compared: "
    if len(candidate.tasks) == len(champion.tasks) == 1:
        (own,), (other,) = candidate.tasks.values(), champion.tasks.values()
        if own.family != other.family:
            raise DataError(f"{pair}one answers {own.family.name}, the other {other.family.name}")
    if set(candidate.tasks) != set(champion.tasks):
        own_tasks, other_tasks = (_listed(side) for side in (candidate, champion))
        raise DataError(f"{pair}one answers {own_tasks}, the other {other_tasks}")
    if candidate.dataset != champion.dataset:
        raise DataError(
            f"{pair}one was trained on {candidate.dataset}, the other on {champion.dataset}. Train both on one "
            "dataset, or evaluate the candidate alone with --alone"
        )
    for name, task in candidate.tasks.items():
        opposite = champion.tasks[name]
        of = f" of {name}" if len(candidate.tasks) > 1 else ""
        if task.family != opposite.family:
            raise DataError(f"{pair}as {name}, one answers {task.family.name}, the other {opposite.family.name}")
        if task.labels != opposite.labels:
            both = ((CANDIDATE, task, opposite), (alias, opposite, task))
            differences = [
                f"only the {which} has {', '.join(only)}"
                for which, one, another in both
                if (only := sorted(set(one.labels) - set(another.labels)))
            ]
            raise DataError(f"{pair}their labels{of} differ, {' and '.join(differences)}. --alone evaluates it alone")


def _tasks(folder: Path, name: str, learned: Sequence[tuple[str, DataSource]]) -> list[AnsweredTask]:
    """The tasks of the model in `folder`; `learned` are the training tables of its lineage with their tasks, the
    nearest last."""
    lines = answering_lines(folder)
    tables = dict(learned)
    if not lines:
        task = learned[-1][0]
        return [AnsweredTask(task, family_of(folder), _labels(folder), tables[task])]
    answered = [line.corpus[0] for line in lines.values()]
    if twice := next((task for task in answered if answered.count(task) > 1), None):
        ways = ", ".join(line for line, record in lines.items() if record.corpus[0] == twice)
        raise DataError(f"{name}: its lines {ways} all answer {twice}; promote a model that answers each task once")
    return [
        AnsweredTask(task, line.family, tuple(sorted(line.labels)), tables[task])
        for task, line in zip(answered, lines.values(), strict=True)
        if line.family is not None
    ]


def _labels(folder: Path) -> tuple[str, ...]:
    config: dict[str, Any] = read_json(folder / "config.json")
    labels = (config.get(CONFIG_KEY) or {}).get("labels")
    return tuple(sorted(labels if labels is not None else config.get("id2label", {}).values()))


def _listed(side: Side) -> str:
    return ("the task " if len(side.tasks) == 1 else "the tasks ") + ", ".join(side.tasks)
