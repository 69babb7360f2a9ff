"""A first look at the sources of a dataset: most mistakes are near the beginning of a file, and are found in a second.

`collect` reads everything, in a process of DVC that takes seconds to start. Before that, files of examples are read
whole here, if they are small, and files of text for a while. Remote files and documentation are left to `collect`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from pipelines.corpora.reading import EXAMPLE_FORMATS, find_files
from pipelines.corpora.reading.addresses import is_address
from pipelines.corpora.reading.parts import whole_file
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.corpora.settings.sources import FileSource, Source
from pipelines.corpora.settings.tables import UNLABELLED
from pipelines.corpora.settings.task import FileTask
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.collect import collected_examples, empty_corpus
from pipelines.corpora.steps.sources import texts

SECONDS = 0.6
"""How long texts are looked at."""
MOST_BYTES = 4 * 2**20
"""Size of the files of a task up to which all of its examples are read."""
CHECKED_AT = 16
"""Texts between two looks at the clock."""


def look_at_sources(dataset: str, root: Path, seconds: float = SECONDS) -> None:
    """Raise the DataError that `collect` would raise, where its reason is found quickly."""
    settings = load_dataset(dataset, root)
    for name, task in settings.labelled.items():
        if isinstance(task, FileTask) and _is_small(task, root):
            collected_examples(dataset, name, task, root)
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


def _is_small(task: FileTask, root: Path) -> bool:
    if any(is_address(path) for path in task.files):
        return False
    files = [file for path in task.files for file in find_files(path, root, EXAMPLE_FORMATS).items()]
    return sum(whole_file(name, path).weight for name, path in files) <= MOST_BYTES


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
