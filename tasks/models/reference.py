"""The model that a command is given: the folder behind a name, a fingerprint, a path, or behind no name at all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import CursusError
from pipelines.models.untrusted import refuse_unsafe


@dataclass(frozen=True)
class NamedModel:
    """A finished model: an artifact of the store, or a folder from elsewhere."""

    title: str
    """The name, or the reason for which it was chosen."""
    folder: Path
    fingerprint: str | None
    """None for a folder that is no artifact."""


def named_model(root: Path, reference: str | None, dataset: str | None = None, *, checked: bool = True) -> NamedModel:
    """The model that `reference` names: a folder, or what `resolve` accepts; for None, the default one of `dataset`.

    Raises the errors of `resolve` and `default_model`, and RecipeError for a folder that holds code or pickles; this is
    not `checked` where nothing of the folder is opened.
    """
    if reference is not None and names_folder(reference):
        if checked:
            refuse_foreign(Path(reference))
        return NamedModel(reference, Path(reference), None)
    # two thirds of the time of `cursus predict` that asks a server for a folder's answers
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.models.ancestry import resolve
    from tasks.models.default import default_model

    store = Store(store_folder(root))
    if reference is not None:
        fingerprint = resolve(root, store, reference)[1]
        return NamedModel(reference, store.find(fingerprint).folder, fingerprint)
    chosen = default_model(root, store, dataset)
    return NamedModel(
        f"{chosen.why} {chosen.fingerprint[:8]}", store.find(chosen.fingerprint).folder, chosen.fingerprint
    )


def names_folder(reference: str) -> bool:
    """Whether `reference` is the path of a folder. Raises CursusError for an empty name, which as a path is the current
    folder."""
    if not reference.strip():
        raise CursusError("the name of the model is empty; name one, or leave it out for the default one")
    return os.path.isdir(reference)  # unlike Path.is_dir, False for a name that is longer than any file's


def refuse_foreign(folder: Path) -> None:
    """Raise RecipeError for a folder from elsewhere that holds code or pickles, or takes far more than its weights."""
    from pipelines.models.oversized import refuse_oversized

    refuse_unsafe(folder)
    refuse_oversized(folder)
