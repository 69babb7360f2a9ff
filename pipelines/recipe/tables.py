"""What the words of a stage's `corpus` are on a dataset: tables, and tasks.

general, domain, task_text, and the dataset's named corpora     plain text: a table of the same name
task, and the dataset's named tasks                             labelled examples: train and validation of the task
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from pipelines.components import did_you_mean
from pipelines.recipe.problems import Problem, Setting
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, PARTS, labelled_table, tasks_in

TASK_TEXT = "task_text"
PLAIN = ("general", "domain", TASK_TEXT)
"""Corpora that every dataset has."""
LEARNED_PARTS = ("train", "validation")
"""Parts of a task that a stage which trains on it reads."""


def is_task(word: str, setting: Setting) -> bool:
    """Whether a word means labelled examples; on an unknown dataset, a name of its own may mean either."""
    return word == MAIN or (setting.tasks is not None and word in setting.tasks)


def is_plain(word: str, setting: Setting) -> bool:
    """Whether a word means plain text; on an unknown dataset, a name of its own may mean either."""
    return word in PLAIN or (setting.corpora is not None and word in setting.corpora)


def family_of(word: str, setting: Setting) -> str | None:
    """Name of the family of a task; None when the dataset is unknown."""
    return setting.family if word == MAIN else (setting.tasks or {}).get(word)


def task_words(corpus: Iterable[str], setting: Setting) -> list[str]:
    """The words of `corpus` that mean, or on an unknown dataset may mean, labelled examples."""
    return [word for word in corpus if word not in PLAIN and not is_plain(word, setting)]


def setting_of(corpus: Iterable[str], setting: Setting) -> Setting:
    """The dataset as a stage on one of its named tasks sees it: `family` is that of the task."""
    tasks = task_words(corpus, setting)
    return replace(setting, family=family_of(tasks[0], setting)) if len(tasks) == 1 else setting


def unknown_word(corpus: Iterable[str], setting: Setting) -> Problem | None:
    """The problem that the dataset has no corpus and no task of a name; None when it has all, or is unknown."""
    if setting.corpora is None or setting.tasks is None:
        return None
    known = [*PLAIN, MAIN, *setting.corpora, *setting.tasks]
    for word in corpus:
        if word not in known:
            return "corpus", (
                f"the dataset has no corpus and no task {word!r}.{did_you_mean(word, known)} Add it under 'corpora' or "
                "'tasks' of the dataset in params.yaml, or choose a dataset that has it"
            )
    return None


def learned_tables(word: str, tasks: Container[str]) -> tuple[str, ...]:
    """Names of the tables that a stage reads for a word of its `corpus`; `tasks` are the dataset's named tasks."""
    if word == MAIN or word in tasks:
        return tuple(labelled_table(word, part) for part in LEARNED_PARTS)
    return (word,)


def judged_tasks(corpus: Iterable[str], answered: tuple[str, ...]) -> tuple[str, ...]:
    """The tasks on which a model that answers `answered` is judged: those in `corpus`, or else all of them."""
    return tuple(task for task in answered if task in corpus) or answered


def judged_tables(tasks: Iterable[str]) -> tuple[str, ...]:
    """Names of the tables that judging models of these tasks reads."""
    return tuple(labelled_table(task, part) for task in tasks for part in PARTS)


def probed_tables(corpus: Iterable[str], tasks: Container[str], tables: Iterable[str]) -> list[str]:
    """Sorted names of the tables that probes of `tables` read: those of the named task in `corpus`, or the main one."""
    task = next((word for word in corpus if word in tasks), MAIN)
    return sorted({labelled_table(task, table) if table in PARTS else table for table in tables})


class ReadsTables(Protocol):
    """A step, or the record of one: what it read, and what it was made of."""

    @property
    def data(self) -> Mapping[str, object]: ...
    @property
    def parents(self) -> Mapping[str, str]: ...


def answered_tasks(fingerprint: str, steps: Mapping[str, ReadsTables]) -> tuple[str, ...]:
    """The tasks that a model answers: those whose tables it, or the model that it continues, read; else the main one.

    `steps` are by fingerprint.
    """
    step = steps.get(fingerprint)
    while step is not None:
        if tasks := tasks_in(step.data):
            return tuple(tasks)
        step = steps.get(step.parents.get("start", ""))
    return (MAIN,)


def named_families(tables: Iterable[str], families: Mapping[str, TaskFamily]) -> dict[str, TaskFamily]:
    """The families of the named tasks among some tables, in the order of the tables."""
    return {task: families[task] for task in tasks_in(tables) if task != MAIN}
