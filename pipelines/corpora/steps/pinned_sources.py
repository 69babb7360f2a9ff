"""Content of the sources of a dataset: the part of its pin that `collect` checks before it reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipelines.corpora.documentation.installation import versions
from pipelines.corpora.reading import EXAMPLE_FORMATS
from pipelines.corpora.reading.source_files import find
from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.settings.sources import DocumentationSource, Source
from pipelines.corpora.settings.task import DocumentationTask, FileTask, TaggedWordsTask, Task, TextsOfLabelTask
from pipelines.corpora.shards.writing import read_json
from pipelines.corpora.steps.pinned_files import pinned_files
from pipelines.corpora.steps.sources import named_files
from pipelines.errors import DataError


def pin_path(dataset: str, root: Path) -> Path:
    """Path of the pin of a dataset."""
    return root / "data" / "pins" / f"{dataset}.json"


def pinned_sources(settings: DatasetSettings, root: Path) -> dict[str, Any]:
    """Block `sources` of a pin: files of every source, versions of packages. Raises DataError for a missing source."""
    tasks = list(settings.labelled.values())
    listed = text_sources(settings)
    sources: dict[str, Any] = {}
    files: dict[str, Any] = {}
    for source in listed:
        if not isinstance(source, DocumentationSource):
            pinned, location = pinned_files(named_files(source, root), root), source.location
            while files.get(location, pinned) != pinned:  # the same address on two servers
                location += "'"
            files[location] = pinned
    for task in tasks:
        if isinstance(task, FileTask):
            files |= {path: pinned_files(find(path, root, EXAMPLE_FORMATS), root) for path in task.files}
    if files:
        sources["files"] = files
    if any(isinstance(one, (DocumentationTask, DocumentationSource)) for one in (*tasks, *listed)):
        sources["packages"] = versions()
    return sources


def check_unchanged(dataset: str, settings: DatasetSettings, root: Path) -> None:
    """Raise DataError when a source differs from its pin: what is read then would be recorded as something else."""
    before, now = read_json(pin_path(dataset, root))["sources"], pinned_sources(settings, root)
    if before == now:
        return
    recorded, current = before.get("files", {}), now.get("files", {})
    changed = next(
        (location for location in current if current[location] != recorded.get(location)),
        "the list of sources or packages",
    )
    raise DataError(
        f"{changed}: changed since data/pins/{dataset}.json was written; run 'cursus data {dataset}', or "
        f"'python -m pipelines.corpora.steps.pin {dataset}' before 'dvc repro'"
    )


def text_sources(settings: DatasetSettings) -> list[Source]:
    """Sources of all texts of a dataset, without its tasks' own files of examples."""
    named = [source for corpus in settings.corpora.values() for source in corpus.sources]
    of_tasks = [source for task in settings.labelled.values() for source in sources_of(task)]
    return [*settings.general, *settings.domain, *of_tasks, *named]


def sources_of(task: Task) -> list[Source]:
    """Text sources of a task, without its own files of examples."""
    if isinstance(task, TextsOfLabelTask):
        return [source for sources in task.texts_of_label.values() for source in sources]
    if isinstance(task, TaggedWordsTask):
        return list(task.tagged_words)
    return list(task.unlabelled) if isinstance(task, FileTask) else []
