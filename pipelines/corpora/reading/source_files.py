"""Resolve a path of params.yaml to files: local ones, or remote ones that are then downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.corpora.reading.addresses import is_address, local_path, secret_in_address
from pipelines.corpora.reading.extensions import FORMATS
from pipelines.corpora.reading.fetching import fetch_files
from pipelines.corpora.reading.finding import find_local
from pipelines.corpora.reading.remote import RemoteFile, find_remote
from pipelines.errors import DataError

REMOTE = "data/remote"
"""Folder of downloaded files. A deleted file is downloaded again when it is needed."""

NO_STORAGE: Mapping[str, Any] = {}


def find(
    path: str, root: Path, formats: tuple[str, ...] = FORMATS, storage: Mapping[str, Any] = NO_STORAGE
) -> dict[str, Path] | dict[str, RemoteFile]:
    """Files of a path, a folder, a glob or an address, by their names in `source` columns, sorted; nothing is
    downloaded.

    DataError as `find_local` and `find_remote`, and for an address that contains a secret.
    """
    if is_address(path):
        if secret := secret_in_address(path):
            raise DataError(
                f"{path.partition('?')[0].rpartition('@')[2]}: {secret} is a secret; keep it in the environment"
            )
        return find_remote(path, storage, formats)
    return find_local(root / Path(local_path(path)).expanduser(), formats)


def find_files(
    path: str, root: Path, formats: tuple[str, ...] = FORMATS, storage: Mapping[str, Any] = NO_STORAGE
) -> dict[str, Path]:
    """Local files as `find` lists them, downloaded if remote. DataError as `find` and `fetch_files`."""
    files = find(path, root, formats, storage)
    remote = [file for file in files.values() if isinstance(file, RemoteFile)]
    if not remote:
        return {name: file for name, file in files.items() if isinstance(file, Path)}
    return dict(zip(files, fetch_files(remote, storage, root / REMOTE), strict=True))
