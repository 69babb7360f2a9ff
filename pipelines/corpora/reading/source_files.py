"""A path of params.yaml as files, wherever it leads: this machine, or a server whose files are then brought here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.corpora.reading.addresses import is_address, local_path, secret_in_address
from pipelines.corpora.reading.endings import FORMATS
from pipelines.corpora.reading.fetching import fetched
from pipelines.corpora.reading.finding import find_local
from pipelines.corpora.reading.remote import RemoteFile, find_remote
from pipelines.errors import DataError

REMOTE = "data/remote"
"""Where the files of servers are kept. What is deleted here is fetched again when it is needed."""

NOTHING: Mapping[str, Any] = {}


def find(
    path: str, root: Path, formats: tuple[str, ...] = FORMATS, storage: Mapping[str, Any] = NOTHING
) -> dict[str, Path] | dict[str, RemoteFile]:
    """The files that a path, a folder, a glob or an address means, by their names in `source` columns, sorted.

    Nothing is fetched. DataError as `find_local` and `find_remote`, and for an address with a secret in it.
    """
    if is_address(path):
        if secret := secret_in_address(path):
            raise DataError(
                f"{path.partition('?')[0].rpartition('@')[2]}: {secret} is a secret; keep it in the environment"
            )
        return find_remote(path, storage, formats)
    return find_local(root / Path(local_path(path)).expanduser(), formats)


def find_files(
    path: str, root: Path, formats: tuple[str, ...] = FORMATS, storage: Mapping[str, Any] = NOTHING
) -> dict[str, Path]:
    """The files as `find` finds them, all of them on this machine. DataError as `find`, and as `fetched`."""
    found = find(path, root, formats, storage)
    remote = [file for file in found.values() if isinstance(file, RemoteFile)]
    if not remote:
        return {name: file for name, file in found.items() if isinstance(file, Path)}
    return dict(zip(found, fetched(remote, storage, root / REMOTE), strict=True))
