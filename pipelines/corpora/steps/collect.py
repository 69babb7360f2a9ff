"""Step `collect`: read every source into `general`, `domain`, `unlabelled` and `task`; assign the parts of the task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.components import listed
from pipelines.corpora.documentation.documented_tasks import documented_examples, texts_without_labels
from pipelines.corpora.examples.files import Example, ExampleReader
from pipelines.corpora.examples.side_tables import read_side_tables
from pipelines.corpora.examples.tagged_words import named, sentences, tagged_line
from pipelines.corpora.reading import EXAMPLE_FORMATS, find_files
from pipelines.corpora.settings.sources import DocumentationSource, Source
from pipelines.corpora.settings.tables import UNLABELLED, columns_of, plain_tables, schema_of, task_file
from pipelines.corpora.settings.task import DocumentationTask, FileTask, TaggedWordsTask, Task, TextsOfLabelTask
from pipelines.corpora.shards.folders import table_from_units, write_table
from pipelines.corpora.shards.tables import TEXTS, Row, labelled_parts, row_of, write_rows
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.shards.writing import write_json
from pipelines.corpora.steps.drawing import assign_parts
from pipelines.corpora.steps.pinned_sources import check_unchanged
from pipelines.corpora.steps.sources import documented, texts, units_of
from pipelines.corpora.steps.step import COUNTS, begin, history, run_step
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, PARTS

LocatedExample = tuple[Example, str, str]
"""An example, its source, and its part: train, validation or test."""


def collect(dataset: str, root: Path) -> None:
    """Write `collected/`. Raises DataError for unreadable or empty sources, and for labels that cannot be learned."""
    step = begin("collect", dataset, root)
    settings, main = step.settings, step.settings.main
    check_unchanged(dataset, settings, root)
    examples = {name: collected_examples(dataset, name, task, root) for name, task in settings.labelled.items()}
    sources: dict[str, Sequence[Source]] = {
        "general": settings.general,
        "domain": settings.domain,
        **{name: corpus.sources for name, corpus in settings.corpora.items()},
        UNLABELLED: main.unlabelled if isinstance(main, FileTask) else [],
    }
    with step.writing("collected") as folder:
        tables: dict[str, Any] = {}
        for name, (rows, tally) in examples.items():
            schema = labelled_parts(settings.labelled[name].family)
            tables[name] = write_rows(folder / task_file(name), schema, rows) | tally.counts()
        for name in plain_tables(settings):
            if name == UNLABELLED and isinstance(main, DocumentationTask):
                own = ((text, where, UNLABELLED) for text, where in texts_without_labels(main))
                tables[name] = write_table(folder / name, TEXTS, own, Tally())
                continue
            units, size = units_of(sources[name], root, schema_of(settings, name), columns_of(settings, name))
            tables[name] = table_from_units(units, folder / name, step.unfinished_table(name), step.processes, size)
            if sources[name] and not tables[name]["documents"]:
                raise empty_corpus(dataset, name, sources[name])
        write_json(folder / COUNTS, history([], "collect", tables))


def empty_corpus(dataset: str, name: str, sources: Sequence[Source]) -> DataError:
    """The error for a corpus without a text."""
    locations = ", ".join(source.location for source in sources)
    return DataError(f"{dataset}: the corpus {name!r} is empty: no text in {locations}")


def collected_examples(dataset: str, name: str, task: Task, root: Path) -> tuple[list[Row], Tally]:
    """The rows of all parts of a task, and the tally of what was left out. The DataError of a named task names it."""
    tally = Tally()
    of_task = "" if name == MAIN else f"tasks.{name}: "
    try:
        examples = list(examples_of(task, root, tally))
    except DataError as mistake:
        raise DataError(f"{of_task}{mistake}") from None
    try:
        check_labels({part: [one for one, _, each in examples if each == part] for part in PARTS}, task.family)
    except DataError as mistake:
        raise DataError(f"{dataset}: {of_task}{mistake}") from None
    return [row_of(task.family, one, where, part) for one, where, part in examples], tally


def examples_of(task: Task, root: Path, tally: Tally) -> Iterator[LocatedExample]:
    """Yield the labelled examples of any kind of task; rows left out are counted in `tally`, by part and reason."""
    if isinstance(task, DocumentationTask):
        return documented_examples(task)
    if isinstance(task, FileTask):
        return _of_files(task, root, tally)
    examples = list(
        _by_label(task, root, tally) if isinstance(task, TextsOfLabelTask) else _of_tagged_words(task, root, tally)
    )
    if not examples:
        raise DataError("the sources of the task have no example")
    shares = {"test": task.test_share, "validation": task.validation_share}
    return _with_parts(examples, task.family, shares)


def _of_files(task: FileTask, root: Path, tally: Tally) -> Iterator[LocatedExample]:
    """Examples of files; without a validation file, some training examples become validation."""
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
        examples = [pair for name, file in files.items() for pair in reader.read(name, file)]
        if not examples:
            left = f"; left out: {dict(tally.dropped)}" if tally.dropped else ""
            raise DataError(f"{path}: the {part} split of the task is empty{left}")
        shares = {"validation": task.validation_share} if part == "train" and not task.validation else {}
        placed += [
            (one, where, held if held != "train" else part)
            for one, where, held in _with_parts(examples, task.family, shares)
        ]
    task.family.complete({part: [one for one, _, each in placed if each == part] for part in PARTS})
    yield from placed


def _by_label(task: TextsOfLabelTask, root: Path, tally: Tally) -> Iterator[tuple[Example, str]]:
    for label, sources in task.texts_of_label.items():
        for source in sources:
            labelled_texts = (
                ((text, where) for text, where, _ in documented(source))
                if isinstance(source, DocumentationSource)
                else texts(source, root, tally)
            )
            for text, where in labelled_texts:
                yield {"text": text, "label": label}, where


def _of_tagged_words(task: TaggedWordsTask, root: Path, tally: Tally) -> Iterator[tuple[Example, str]]:
    for source in task.tagged_words:
        if isinstance(source, DocumentationSource):
            raise DataError("tagged_words: documentation has no tagged words; name a file")
        for line, where in texts(source.model_copy(update={"format": "lines"}), root, tally):
            for number, sentence in enumerate(sentences(tagged_line(line))):
                tokens, tags = named(sentence, task.entities, task.joined)
                yield {"tokens": tokens, "tags": tags}, f"{where}.{number}"


def _with_parts(
    examples: Sequence[tuple[Example, str]], family: TaskFamily, shares: Mapping[str, float]
) -> Iterator[LocatedExample]:
    held = assign_parts([one for one, _ in examples], family, shares)
    for (one, where), part in zip(examples, held, strict=True):
        yield one, where, part


def check_labels(examples: Mapping[str, Sequence[Example]], family: TaskFamily) -> None:
    """Raise DataError when a label of another split is not in the training split; free-text answers have no labels."""
    learned = family.labels(examples["train"])
    counts = {part: Counter(label for one in rows for label in family.labels([one])) for part, rows in examples.items()}
    known = set(learned).union(*counts.values())
    if not known:
        return
    if len(examples["train"]) < len(known):
        raise DataError(f"the task has {len(examples['train'])} training examples, fewer than its {len(known)} classes")
    for part in ("validation", "test"):
        unseen = sorted(set(counts[part]) - set(learned))
        if unseen:
            raise DataError(
                f"the {part} split has the label {unseen[0]!r} ({counts[part][unseen[0]]} examples), which no training "
                f"example has; the training labels are {listed(map(repr, sorted(learned)))}"
            )
    if len(learned) < 2:
        raise DataError(f"every training example has the label {learned[0]!r}; a task needs two classes")


if __name__ == "__main__":
    run_step(collect)
