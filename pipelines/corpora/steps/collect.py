"""Read every source into three tables, `general`, `domain` and `task`, and hold out what the task is judged on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.corpora.documentation.docstrings import documentation
from pipelines.corpora.documentation.documented_tasks import documented_examples
from pipelines.corpora.examples.files import Example, ExampleReader
from pipelines.corpora.examples.side_tables import read_side_tables
from pipelines.corpora.examples.tagged_words import named, sentences, tagged_line
from pipelines.corpora.reading import EXAMPLE_FORMATS, find_files
from pipelines.corpora.settings.sources import DocumentationSource, Source
from pipelines.corpora.settings.task import DocumentationTask, FileTask, TaggedWordsTask, Task, TextsOfLabelTask
from pipelines.corpora.shards.folders import table_from_units
from pipelines.corpora.shards.tables import labelled_parts, row_of, write_rows
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.shards.writing import write_json
from pipelines.corpora.steps.drawing import assign_parts
from pipelines.corpora.steps.pinned_sources import check_unchanged
from pipelines.corpora.steps.sources import texts, units_of
from pipelines.corpora.steps.step import COUNTS, PLAIN, begin, history, run_step
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily

LocatedExample = tuple[Example, str, str]
"""An example, where it stands, and its part: train, validation or test."""


def collect(dataset: str, root: Path) -> None:
    """Write `collected/`. DataError for a source that cannot be read, has no text, or labels that cannot be learned."""
    step = begin("collect", dataset, root)
    settings, task, family = step.settings, step.settings.task, step.settings.task.family
    check_unchanged(dataset, settings, root)
    tally = Tally()
    examples = list(examples_of(task, root, tally))
    check_labels({part: [one for one, _, each in examples if each == part] for part in PARTS}, family)
    rows = [row_of(family, one, where, part) for one, where, part in examples]
    sources: dict[str, Sequence[Source]] = {
        "general": settings.general,
        "domain": settings.domain,
        "unlabelled": task.unlabelled if isinstance(task, FileTask) else [],
    }
    with step.writing("collected") as folder:
        tables: dict[str, Any] = {
            "task": write_rows(folder / "task.parquet", labelled_parts(family), rows) | tally.counts()
        }
        for name in PLAIN:
            units, size = units_of(sources[name], root)
            tables[name] = table_from_units(units, folder / name, step.unfinished(name), step.processes, size)
            if sources[name] and not tables[name]["documents"]:
                places = ", ".join(source.location for source in sources[name])
                raise DataError(f"{dataset}: the corpus {name!r} is empty: {places} holds no text")
        write_json(folder / COUNTS, history([], "collect", tables))


def examples_of(task: Task, root: Path, tally: Tally) -> Iterator[LocatedExample]:
    """The labelled examples of any kind of task; `tally` hears of rows that were left out, by part and reason."""
    if isinstance(task, DocumentationTask):
        return documented_examples(task)
    if isinstance(task, FileTask):
        return _of_files(task, root, tally)
    found = list(
        _by_label(task, root, tally) if isinstance(task, TextsOfLabelTask) else _of_tagged_words(task, root, tally)
    )
    if not found:
        raise DataError("the sources of the task hold no example")
    shares = {"test": task.test_share, "validation": task.validation_share}
    return _placed(found, task.family, shares)


def _of_files(task: FileTask, root: Path, tally: Tally) -> Iterator[LocatedExample]:
    """Without a validation file, some training examples become validation."""
    paths = {"train": task.train, "test": task.test} | ({"validation": task.validation} if task.validation else {})
    tables = read_side_tables(task.family, task.side_tables, root)
    placed: list[LocatedExample] = []
    for part, path in paths.items():
        reader = ExampleReader(
            task.family,
            tally,
            columns=task.columns,
            tables=tables,
            part=part,
            drop_bad_rows=task.bad_rows == "drop",
        )
        files = find_files(path, root, EXAMPLE_FORMATS)
        found = [pair for name, file in files.items() for pair in reader.read(name, file)]
        if not found:
            left = f"; left out: {dict(tally.dropped)}" if tally.dropped else ""
            raise DataError(f"{path}: the {part} split of the task is empty{left}")
        shares = {"validation": task.validation_share} if part == "train" and not task.validation else {}
        placed += [
            (one, where, held if held != "train" else part) for one, where, held in _placed(found, task.family, shares)
        ]
    task.family.complete({part: [one for one, _, each in placed if each == part] for part in PARTS})
    yield from placed


def _by_label(task: TextsOfLabelTask, root: Path, tally: Tally) -> Iterator[tuple[Example, str]]:
    for label, sources in task.texts_of_label.items():
        for source in sources:
            found = (
                documentation(source.documentation)
                if isinstance(source, DocumentationSource)
                else texts(source, root, tally)
            )
            for text, where in found:
                yield {"text": text, "label": label}, where


def _of_tagged_words(task: TaggedWordsTask, root: Path, tally: Tally) -> Iterator[tuple[Example, str]]:
    for source in task.tagged_words:
        if isinstance(source, DocumentationSource):
            raise DataError("tagged_words: documentation has no tagged words; name a file")
        for line, where in texts(source.model_copy(update={"format": "lines"}), root, tally):
            for number, sentence in enumerate(sentences(tagged_line(line))):
                tokens, tags = named(sentence, task.entities, task.joined)
                yield {"tokens": tokens, "tags": tags}, f"{where}.{number}"


def _placed(
    found: Sequence[tuple[Example, str]], family: TaskFamily, shares: Mapping[str, float]
) -> Iterator[LocatedExample]:
    held = assign_parts([one for one, _ in found], family, shares)
    for (one, where), part in zip(found, held, strict=True):
        yield one, where, part


PARTS = ("train", "validation", "test")


def check_labels(examples: Mapping[str, Sequence[Example]], family: TaskFamily) -> None:
    """DataError when the training split cannot teach what the other splits ask; open answers need no teaching."""
    learned = family.labels(examples["train"])
    asked = {
        part: Counter(label for one in found for label in family.labels([one])) for part, found in examples.items()
    }
    known = set(learned).union(*asked.values())
    if not known:
        return
    if len(examples["train"]) < len(known):
        raise DataError(f"the task has {len(examples['train'])} training examples, fewer than its {len(known)} classes")
    for part in ("validation", "test"):
        unseen = sorted(set(asked[part]) - set(learned))
        if unseen:
            raise DataError(
                f"the {part} split has the label {unseen[0]!r} ({asked[part][unseen[0]]} examples), which no training "
                f"example has; the training labels are {', '.join(map(repr, sorted(learned)))}"
            )
    if len(learned) < 2:
        raise DataError(f"every training example has the label {learned[0]!r}; a task needs two classes")


if __name__ == "__main__":
    run_step(collect)
