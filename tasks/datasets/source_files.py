"""The files that a dataset's sources are in."""

from __future__ import annotations

from pathlib import Path

from pipelines.corpora.reading import EXAMPLE_FORMATS
from pipelines.corpora.reading.source_files import find
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.corpora.settings.sources import DocumentationSource
from pipelines.corpora.settings.task import FileTask
from pipelines.corpora.steps.pinned_sources import text_sources
from pipelines.corpora.steps.sources import named_files


def local_source_files(dataset: str, root: Path) -> list[Path] | None:
    """Files of all sources of a dataset, those of packages among them; None where some are elsewhere, and may change
    without a trace here. Raises DataError for a missing source."""
    settings = load_dataset(dataset, root)
    files = [
        file
        for source in text_sources(settings)
        if not isinstance(source, DocumentationSource)
        for file in named_files(source, root).values()
    ]
    tasks = [task for task in settings.labelled.values() if isinstance(task, FileTask)]
    files += [file for task in tasks for path in task.files for file in find(path, root, EXAMPLE_FORMATS).values()]
    local = [file for file in files if isinstance(file, Path)]
    return local if len(local) == len(files) else None
