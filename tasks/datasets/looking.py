"""A look at new sources before anything that takes seconds: digests of the code, DVC, Prefect.

A state of the sources that was looked at is not looked at again: it is remembered by the settings of the
sources and the states of local files.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from pipelines.corpora.settings.dataset import DatasetSettings, load_dataset
from pipelines.corpora.steps.first_look import look_at_sources
from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.file_states import digest_of, states_of
from tasks.datasets.source_files import local_source_files
from tasks.environment import private_state_folder

LOOKED = "looked"
"""Folder of the state folder with the last state of each dataset's sources that was looked at."""


def look_at_new_sources(dataset: str, root: Path) -> bool:
    """Look at the sources of a dataset, unless they are as they were at the last look; returns whether they were
    looked at. Raises the DataError that preparing the dataset would raise, where its reason is found quickly."""
    settings = load_dataset(dataset, root)
    state = _state(settings, root)
    remembered = private_state_folder(root) / LOOKED / dataset
    if remembered.is_file() and remembered.read_text(encoding="utf-8") == state:
        return False
    look_at_sources(dataset, root)
    remembered.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(remembered, state)
    return True


def _state(settings: DatasetSettings, root: Path) -> str:
    """A digest of what decides on what a look at the sources sees. Raises DataError for a missing source."""
    chosen = repr([settings.labelled, settings.general, settings.domain, settings.corpora])
    files = digest_of(states_of(map(str, local_source_files(settings, root))))
    return sha256(f"{chosen}\n{files}".encode("utf-8", "surrogateescape")).hexdigest()
