"""Digest of many files in a few lines: their number, their bytes, and one sha256 over all their digests.

    {"files": 200000, "bytes": 104857600000, "sha256": "5f…", "each": {…}}      `each` for up to SHOWN files

Local files are identified by their content, remote files by size and tag. Content is hashed once, then recognised by
the file's size, modification time and inode: about two seconds for 200,000 unchanged files.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from pipelines.corpora.reading.remote import RemoteFile
from pipelines.errors import DataError
from pipelines.lineage.fingerprint import digest_file

SHOWN = 20
"""Up to this many files of a source are listed one by one, for inspection."""
AT_ONCE = 1000
"""Files processed together: held in memory at once, and written to the database in one transaction."""
DIGESTS_SEEN = ".cursus/source_digests.sqlite"
"""Database of known digests, relative to the root of the checkout."""


def pinned_files(files: Mapping[str, Path] | Mapping[str, RemoteFile], root: Path) -> dict[str, Any]:
    """Entry of one source in a pin. Raises DataError for an unreadable file."""
    combined, total = sha256(), 0
    each: dict[str, dict[str, Any]] = {}
    for name, known in _known(files, root):
        content = known.get("sha256") or known["tag"]
        combined.update(f"{name}\0{known['bytes']}\0{content}\n".encode("utf-8", "surrogateescape"))
        total += known["bytes"]
        if len(files) <= SHOWN:
            each[name] = known
    summary = {"files": len(files), "bytes": total, "sha256": combined.hexdigest()}
    return summary | ({"each": each} if each else {})


def _known(files: Mapping[str, Path] | Mapping[str, RemoteFile], root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    remote = {name: file for name, file in files.items() if isinstance(file, RemoteFile)}
    for name, file in remote.items():
        yield name, {"bytes": file.bytes, "tag": file.tag}
    if not remote:
        local = [file for file in files.values() if isinstance(file, Path)]
        for name, (size, digest) in zip(files, digests(local, root), strict=True):
            yield name, {"bytes": size, "sha256": digest}


def digests(files: Sequence[Path], root: Path) -> Iterator[tuple[int, str]]:
    """Yield the size in bytes and sha256 of every file; files unchanged since the last call are not read again."""
    store = root / DIGESTS_SEEN
    store.parent.mkdir(parents=True, exist_ok=True)
    with closing(_opened(store)) as known, ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for begin in range(0, len(files), AT_ONCE):
            some = files[begin : begin + AT_ONCE]
            states = [_state(file) for file in some]
            keys = [_key(file, state) for file, state in zip(some, states, strict=True)]
            rows = [
                known.execute("SELECT sha256 FROM seen WHERE file = ? AND stamp = ?", key).fetchone() for key in keys
            ]
            unknown = [file for file, row in zip(some, rows, strict=True) if row is None]
            fresh = pool.map(_digest, unknown)  # hashing releases the GIL
            with known:
                for state, key, row in zip(states, keys, rows, strict=True):
                    digest = row[0].hex() if row else next(fresh)
                    if not row:
                        known.execute("REPLACE INTO seen VALUES (?, ?, ?)", (*key, bytes.fromhex(digest)))
                    yield state.st_size, digest


def _opened(store: Path) -> sqlite3.Connection:
    """Open the database of known digests; a damaged one is deleted, since everything in it can be recomputed."""
    for _ in range(2):
        known = sqlite3.connect(store, timeout=60)
        try:
            known.execute(
                "CREATE TABLE IF NOT EXISTS seen (file BLOB PRIMARY KEY, stamp BLOB, sha256 BLOB) WITHOUT ROWID"
            )
            return known
        except sqlite3.OperationalError:
            raise  # another process holds it, or the disk is full
        except sqlite3.DatabaseError:
            known.close()
            store.unlink()
    raise AssertionError("a new store is whole")


def _key(file: Path, state: os.stat_result) -> tuple[bytes, bytes]:
    stamp = f"{state.st_size} {state.st_mtime_ns} {state.st_ino}"
    return _short(os.fsencode(file)), _short(stamp.encode())


def _digest(file: Path) -> str:
    try:
        return digest_file(file)
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}; check its permissions, or the disk") from None


def _state(file: Path) -> os.stat_result:
    try:
        return file.stat()
    except OSError as error:
        raise DataError(f"{file}: cannot be accessed: {error.strerror}; check the path and its permissions") from None


def _short(name: bytes) -> bytes:
    return blake2b(name, digest_size=16).digest()
