"""Labelled examples of task families from SciPy's documentation strings: which exercise makes them, of which texts, and
in which form they are tested."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pipelines.corpora.documentation.dialogue_tasks import response_examples, session_rows
from pipelines.corpora.documentation.docstrings import task_rows
from pipelines.corpora.documentation.exercises import DocumentedEntry, exercise_that_fills
from pipelines.corpora.documentation.numpydoc import parse_docstring
from pipelines.corpora.documentation.transcription import transcribed
from pipelines.corpora.examples.files import Example
from pipelines.corpora.settings.task import WORDS, DocumentationTask
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import PARTS

MIN_SUMMARY = 20
"""Minimum characters of a summary."""


def documented_examples(task: DocumentationTask) -> Iterator[tuple[Example, str, str]]:
    """Examples with their sources and parts. DataError for a family of which this corpus has no examples."""
    rows = task_rows(task)
    if task.texts == "summaries":
        rows = _of_summaries(rows)
    is_choice = "choices" in task.family.columns
    if task.texts == "sessions" and not is_choice:
        rows = session_rows(rows)
    examples = response_examples(rows) if task.texts == "sessions" and is_choice else examples_of(rows, task.family)
    for example, source, part in examples:
        if part == "test" and task.tested_form == "transcribed":
            example = {name: _transcribed(value) if name in WORDS else value for name, value in example.items()}
        yield example, source, part


def _transcribed(value: str | list[str]) -> str | list[str]:
    return transcribed(value) if isinstance(value, str) else [transcribed(word) for word in value]


def texts_without_labels(task: DocumentationTask) -> Iterator[tuple[str, str]]:
    """Whole texts and their sources of the training part, where examples are summaries; nothing otherwise."""
    if task.texts == "summaries":
        yield from ((text, source) for text, _, source, part in task_rows(task) if part == "train")


def _of_summaries(rows: Iterable[tuple[str, str, str, str]]) -> Iterator[tuple[str, str, str, str]]:
    """Rows of the first paragraphs, in one line; an example needs words enough to have a subject."""
    for text, label, source, part in rows:
        summary = parse_docstring(text).summary
        if len(summary) >= MIN_SUMMARY:
            yield summary, label, source, part


def examples_of(rows: Iterable[tuple[str, str, str, str]], family: TaskFamily) -> Iterator[tuple[Example, str, str]]:
    """Examples of `family` from rows `text, label, source, part`. DataError as `documented_examples`."""
    exercise = exercise_that_fills(family.columns)
    if exercise is None:
        raise DataError(f"the documentation holds no examples of {family.name}; set the files of the task")
    entries = [DocumentedEntry(*row, parse_docstring(row[0])) for row in rows]
    placed = [({**example}, entry.source, entry.part) for entry, example in exercise.examples(entries)]
    family.complete({part: [example for example, _, each in placed if each == part] for part in PARTS})
    yield from placed
