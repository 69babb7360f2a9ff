"""A first look at the sources of a dataset: most mistakes are near the beginning of a file, and are found in a second.

`collect` reads everything, in a process of DVC that takes seconds to start. Before that, files of examples are read
whole here, if they are small; the first examples of larger ones, and files of text, are read for a while. Remote files
and documentation are left to `collect`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pipelines.corpora.examples.files import ExampleReader
from pipelines.corpora.examples.side_tables import read_side_tables
from pipelines.corpora.reading import EXAMPLE_FORMATS, file_format, find_files
from pipelines.corpora.reading.addresses import is_address
from pipelines.corpora.reading.parts import whole_file
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.corpora.settings.sources import FileSource, Source
from pipelines.corpora.settings.tables import UNLABELLED
from pipelines.corpora.settings.task import FileTask
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.collect import collected_examples, empty_corpus
from pipelines.corpora.steps.sources import texts
from pipelines.errors import DataError
from pipelines.lineage.fingerprint import digest_file
from pipelines.task_families.labelled_tables import MAIN

SECONDS = 0.6
"""How long texts are looked at."""
MOST_BYTES = 4 * 2**20
"""Size of the files of a task up to which all of its examples are read."""
GIVES_WAY_TO = {"train": ("validation", "test"), "validation": ("test",)}
"""Split → the splits whose examples it loses."""
CHECKED_AT = 16
"""Texts between two looks at the clock."""


def look_at_sources(dataset: str, root: Path, seconds: float = SECONDS) -> None:
    """Raise the DataError that `collect` would raise, where its reason is found quickly."""
    settings = load_dataset(dataset, root)
    tasks = {name: task for name, task in settings.labelled.items() if isinstance(task, FileTask)}
    for name, task in tasks.items():
        _refuse_equal_splits(dataset, name, task, root)
        if _bytes(task.files, root) <= MOST_BYTES:
            collected_examples(dataset, name, task, root)
        else:
            _look_at_examples(name, task, root, time.monotonic() + seconds / len(tasks))
    corpora: dict[str, Sequence[Source]] = {
        "general": settings.general,
        "domain": settings.domain,
        **{name: corpus.sources for name, corpus in settings.corpora.items()},
        UNLABELLED: settings.main.unlabelled if isinstance(settings.main, FileTask) else [],
    }
    left = {name: sources for name, sources in corpora.items() if sources and all(map(_is_read_here, sources))}
    end = time.monotonic() + seconds
    for number, (name, sources) in enumerate(left.items()):
        now = time.monotonic()
        _look_at_corpus(dataset, name, sources, root, now + max(0.0, end - now) / (len(left) - number))


def _bytes(paths: Sequence[str], root: Path) -> float:
    """Approximate bytes of text in the files of some paths; infinite where one is on a server."""
    if any(is_address(path) for path in paths):
        return math.inf
    files = [file for path in paths for file in find_files(path, root, EXAMPLE_FORMATS).items()]
    return sum(whole_file(name, path).weight for name, path in files)


def _refuse_equal_splits(dataset: str, name: str, task: FileTask, root: Path) -> None:
    """Raise DataError when every file of a split is equal to one of the splits whose examples it loses.

    Contents are read only where every size occurs there, too.
    """
    paths = {"train": task.train, "validation": task.validation, "test": task.test}
    files = {
        part: [file for file in find_files(path, root, EXAMPLE_FORMATS).values() if file.stat().st_size]
        for part, path in paths.items()
        if path and not is_address(path)
    }
    for part, others in GIVES_WAY_TO.items():
        own, there = files.get(part, []), [file for other in others for file in files.get(other, [])]
        if own and _are_among(own, there, lambda file: file.stat().st_size) and _are_among(own, there, digest_file):
            also = ", ".join(str(paths[other]) for other in others if files.get(other))
            raise DataError(
                f"{dataset}: {_of_task(name)}leak: {part} ({paths[part]}) has the same content as {also}; without what "
                f"they share, the {part} split has no examples left; provide more, with texts of their own"
            )


def _are_among(some: Sequence[Path], others: Sequence[Path], key: Callable[[Path], object]) -> bool:
    return set(map(key, some)) <= set(map(key, others))


def _of_task(name: str) -> str:
    """What an error about a task begins with: nothing for the main one."""
    return "" if name == MAIN else f"tasks.{name}: "


def _look_at_examples(name: str, task: FileTask, root: Path, end: float) -> None:
    """Read the first examples of every local file of a large task, until `end`.

    Files of one JSON value are left out: they are read as a whole.
    """
    if _bytes([*task.side_tables.values()], root) > MOST_BYTES:
        return
    paths = {"train": task.train, "test": task.test} | ({"validation": task.validation} if task.validation else {})
    try:
        tables = read_side_tables(task.family, task.side_tables, root)
        files = [
            (part, *file)
            for part, path in paths.items()
            if not is_address(path)
            for file in find_files(path, root, EXAMPLE_FORMATS).items()
            if file_format(file[1], EXAMPLE_FORMATS) != ".json"
        ]
        for number, (part, file_name, path) in enumerate(files):
            now = time.monotonic()
            until = now + max(0.0, end - now) / (len(files) - number)
            drops = task.bad_rows == "drop"
            reader = ExampleReader(
                task.family, Tally(), columns=task.columns, tables=tables, part=part, drop_bad_rows=drops
            )
            for position, _ in enumerate(reader.read(file_name, path)):
                if position % CHECKED_AT == 0 and time.monotonic() >= until:
                    break
    except DataError as mistake:
        raise DataError(f"{_of_task(name)}{mistake}") from None


def _is_read_here(source: Source) -> bool:
    """Whether a source is in local files, all of whose records are texts or a mistake: no others are read in vain."""
    if not isinstance(source, FileSource) or is_address(source.path):
        return False
    return source.bad_records == "refuse" and tuple(source.share) == (0, 1)


def _look_at_corpus(dataset: str, name: str, sources: Sequence[Source], root: Path, end: float) -> None:
    """Read the sources of a corpus until `end`, each for an equal share of the time."""
    is_empty = True
    for number, source in enumerate(sources):
        assert isinstance(source, FileSource)
        now = time.monotonic()
        until = now + max(0.0, end - now) / (len(sources) - number)
        for position, _ in enumerate(texts(source, root, Tally())):
            is_empty = False
            if position % CHECKED_AT == 0 and time.monotonic() >= until:
                break
    if is_empty:
        raise empty_corpus(dataset, name, sources)
