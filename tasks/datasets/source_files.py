"""The local files that a dataset's sources are in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pipelines.corpora.reading import EXAMPLE_FORMATS
from pipelines.corpora.reading.addresses import is_address
from pipelines.corpora.reading.remote import RemoteFile
from pipelines.corpora.reading.source_files import find
from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.settings.sources import DocumentationSource
from pipelines.corpora.settings.task import FileTask
from pipelines.corpora.steps.pinned_sources import text_sources
from pipelines.corpora.steps.sources import named_files

_Listing: TypeAlias = Callable[[], Mapping[str, Path] | Mapping[str, RemoteFile]]


def has_remote_sources(settings: DatasetSettings, root: Path) -> bool:
    """Whether some source is on a server, where it may change without a trace here."""
    return any(is_address(location) for location, _ in _sources(settings, root))


def local_source_files(settings: DatasetSettings, root: Path) -> Iterator[Path]:
    """Yield the files of all sources that are not on a server; those of packages among them.

    Raises DataError for a missing source.
    """
    for location, listing in _sources(settings, root):
        if not is_address(location):
            yield from (file for file in listing().values() if isinstance(file, Path))


def _sources(settings: DatasetSettings, root: Path) -> Iterator[tuple[str, _Listing]]:
    """Location of each source of texts or examples, and what lists its files."""
    for source in text_sources(settings):
        if not isinstance(source, DocumentationSource):
            yield source.location, partial(named_files, source, root)
    for task in settings.labelled.values():
        for path in task.files if isinstance(task, FileTask) else ():
            yield path, partial(find, path, root, EXAMPLE_FORMATS)
