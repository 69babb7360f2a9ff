"""Read every source into three tables, `general`, `domain` and `task`, and hold out what the task is judged on."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from pipelines.corpora.documentation import documentation, task_rows
from pipelines.corpora.overlap import text_key
from pipelines.corpora.reading import find_files, read_examples, read_texts
from pipelines.corpora.settings import DocumentationSource, DocumentationTask, FileSource, FileTask, load_dataset
from pipelines.corpora.step import prepared, run_step
from pipelines.corpora.tables import PARTS, TEXTS, write_rows
from pipelines.corpora.writing import write_json, written_aside
from pipelines.errors import DataError

Labelled = tuple[str, str | None, str, str]
"""text, label, source, part: train, validation, test or unlabelled"""


def collect(dataset: str, root: Path) -> None:
    """Write `collected/`. DataError for a source that cannot be read, has no text, or labels that cannot be learned."""
    settings = load_dataset(dataset, root)
    task = list(
        task_rows(settings.task) if isinstance(settings.task, DocumentationTask) else file_task(settings.task, root)
    )
    check_labels([row for row in task if row[3] != "unlabelled"])
    with written_aside(prepared(dataset, root) / "collected") as folder:
        counts = {"task": write_rows(folder / "task.parquet", PARTS, task)}
        for corpus in ("general", "domain"):
            sources = getattr(settings, corpus)
            counts[corpus] = write_rows(folder / f"{corpus}.parquet", TEXTS, texts(sources, root))
            if not counts[corpus]["documents"]:
                named = ", ".join(source.path for source in sources if isinstance(source, FileSource))
                raise DataError(f"{dataset}: the corpus {corpus!r} is empty: {named} holds no text")
        write_json(folder / "counts.json", [{"step": "collect", "tables": counts}])


def texts(sources: Iterable[FileSource | DocumentationSource], root: Path) -> Iterator[tuple[str, str]]:
    """`text, source` of some sources, in the order they are named."""
    for source in sources:
        if isinstance(source, DocumentationSource):
            yield from documentation(source.documentation)
        else:
            for name, path in find_files(source.path, root).items():
                yield from read_texts(name, path, source.text)


def file_task(task: FileTask, root: Path) -> Iterator[Labelled]:
    """The rows of a labelled task in files; without a validation file, some training rows become validation."""
    parts = {"train": task.train, "test": task.test} | ({"validation": task.validation} if task.validation else {})
    rows: dict[str, list[tuple[str, str, str]]] = {}
    for part, path in parts.items():
        found = find_files(path, root)
        rows[part] = [row for name, file in found.items() for row in read_examples(name, file, task.text, task.label)]
        if not rows[part]:
            raise DataError(f"{path}: the {part} split of the task is empty")
    held_out = set() if task.validation else hold_out(rows["train"], task.validation_share)
    for part in parts:
        for number, row in enumerate(rows[part]):
            yield *row, "validation" if part == "train" and number in held_out else part
    for text, source in texts(task.unlabelled, root):
        yield text, None, source, "unlabelled"


def hold_out(rows: list[tuple[str, str, str]], share: float) -> set[int]:
    """The numbers of the rows to hold out, by the texts' hashes: of each label the share, at least one of two."""

    def held_out(examples: int) -> int:
        return max(math.floor(share * examples), min(1, examples - 1))

    of_label: dict[str, list[tuple[bytes, int]]] = defaultdict(list)
    for number, (text, label, _) in enumerate(rows):
        of_label[label].append((sha256(text_key(text)).digest(), number))
    return {number for ranks in of_label.values() for _, number in sorted(ranks)[: held_out(len(ranks))]}


def check_labels(rows: Iterable[tuple[str, str | None, str, str]]) -> None:
    """DataError when the training split cannot teach what the other splits ask."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for _, label, _, part in rows:
        seen[part][str(label)] += 1
    labels = set(seen["train"])
    asked = labels | set(seen["validation"]) | set(seen["test"])
    if seen["train"].total() < len(asked):
        raise DataError(f"the task has {seen['train'].total()} training examples, fewer than its {len(asked)} classes")
    for part in ("validation", "test"):
        unseen = sorted(set(seen[part]) - labels)
        if unseen:
            raise DataError(
                f"the {part} split has the label {unseen[0]!r} ({seen[part][unseen[0]]} examples), which no training "
                f"example has; the training labels are {', '.join(map(repr, sorted(labels)))}"
            )
    if len(labels) < 2:
        raise DataError(f"every training example has the label {next(iter(labels), None)!r}; a task needs two classes")


if __name__ == "__main__":
    run_step(collect)
