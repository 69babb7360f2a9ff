"""A look at new sources before anything that takes seconds: digests of the code, DVC, Prefect.

A state of the sources that was looked at is not looked at again: it is remembered by the settings of the sources, and
by size, modification time and inode of each local file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from pipelines.corpora.reading import EXAMPLE_FORMATS
from pipelines.corpora.reading.addresses import is_address
from pipelines.corpora.reading.parts import whole_file
from pipelines.corpora.reading.source_files import find
from pipelines.corpora.settings.dataset import DatasetSettings, load_dataset
from pipelines.corpora.settings.sources import DocumentationSource
from pipelines.corpora.settings.task import FileTask
from pipelines.corpora.steps.first_look import look_at_sources
from pipelines.corpora.steps.pinned_sources import text_sources
from pipelines.corpora.steps.sources import named_files
from pipelines.lineage.disk import write_text_atomically
from tasks.environment import private_state_folder

LOOKED = "looked"
"""Folder of the state folder with the last state of each dataset's sources that was looked at."""


def look_at_new_sources(dataset: str, root: Path) -> bool:
    """Look at the sources of a dataset, unless they are as they were at the last look; returns whether they were
    looked at. Raises the DataError that preparing the dataset would raise, where its reason is found quickly."""
    settings = load_dataset(dataset, root)
    state = sha256(repr([*_state(settings, root)]).encode("utf-8", "surrogateescape")).hexdigest()
    remembered = private_state_folder(root) / LOOKED / dataset
    if remembered.is_file() and remembered.read_text(encoding="utf-8") == state:
        return False
    look_at_sources(dataset, root)
    remembered.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(remembered, state)
    return True


def _state(settings: DatasetSettings, root: Path) -> Iterator[object]:
    """What decides on what a look at the sources sees. Raises DataError for a missing source."""
    yield [repr(one) for one in (settings.labelled, settings.general, settings.domain, settings.corpora)]
    for source in text_sources(settings):
        if not isinstance(source, DocumentationSource) and not is_address(source.location):
            yield from _stamps(named_files(source, root).values())
    for task in settings.labelled.values():
        for path in task.files if isinstance(task, FileTask) else ():
            if not is_address(path):
                yield from _stamps(find(path, root, EXAMPLE_FORMATS).values())


def _stamps(files: Iterable[object]) -> Iterator[tuple[str, int, int, int]]:
    for file in files:
        if isinstance(file, Path):
            part = whole_file(file.name, file)
            yield str(file), part.bytes, part.modified, file.stat().st_ino
