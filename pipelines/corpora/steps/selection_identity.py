"""Identity of selection and mixtures in the pin: their settings, code, files and libraries."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.steps.select import check_files
from pipelines.lineage.fingerprint import digest_file
from pipelines.lineage.source import source_hash


def task_text_identity(dataset: str, settings: DatasetSettings, root: Path) -> dict[str, Any]:
    """Identity of the text for task adaptation. Raises RecipeError for a selection whose files cannot be used."""
    selection = settings.task_text.selection
    identity: dict[str, Any] = {"task_text": settings.task_text.model_dump(mode="json")}
    if selection is not None:
        # members of a family are looked up by name, so that no import leads to their code
        modules = {type(part).__module__ for part in selection.parts()}
        identity["code"] = {module: source_hash(module) for module in sorted(modules)}
        files = check_files(selection, dataset, root)
        identity["files"] = {name: digest_file(path) for name, path in sorted(files.items())}
    return identity


def selection_libraries(settings: DatasetSettings) -> dict[str, str]:
    """Versions of the libraries that affect the selection; empty without a selection."""
    selection = settings.task_text.selection
    names = selection.libraries() if selection else set()
    return {name: version(name) for name in sorted(names)}


def mixture_identity(settings: DatasetSettings) -> dict[str, Any]:
    """Identity of the tables of plain text: the mixtures, and the language of each source."""
    mixed = settings.mixtures.by_corpus()
    languages = {name: [[source.collection, source.language] for source in getattr(settings, name)] for name in mixed}
    return {
        "language": settings.language,
        "mixtures": settings.mixtures.model_dump(mode="json"),
        "languages": languages,
        "own": settings.task_text.own,
    }
