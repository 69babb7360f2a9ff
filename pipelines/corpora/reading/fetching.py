"""Download remote files, once each; an interrupted download resumes where it stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import file_digest
from pathlib import Path
from typing import Any

from pipelines.corpora.reading.remote import RemoteFile, remote_file
from pipelines.corpora.reading.servers import file_system_of, open_at
from pipelines.corpora.shards.writing import write_json
from pipelines.errors import DataError
from pipelines.lineage.disk import flush

ATTEMPTS = 4
PAUSE = 1.0
"""Seconds before the second attempt."""
AT_ONCE = 4
"""Concurrent downloads."""
BLOCK = 1 << 20


def fetch_files(files: Sequence[RemoteFile], storage: Mapping[str, Any], home: Path) -> list[Path]:
    """Download the files that are not yet under `home`, several at once, and return the local paths in order.

    An interrupted download is retried, up to ATTEMPTS attempts in all, after PAUSE seconds and then twice as long each
    time. DataError when all attempts fail or the file changed on the server; partial downloads are kept for the next
    run.
    """
    missing = [file for file in files if not _is_downloaded(file, home)]
    if missing:
        server = file_system_of(missing[0].address, storage)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            waiting = [pool.submit(_fetch, server, file, home) for file in missing]
            try:
                for done in waiting:
                    done.result()
            finally:
                pool.shutdown(cancel_futures=True)
    return [_local_path(file, home) for file in files]


class _InterruptedDownloadError(Exception):
    """The server or the network failed."""


def _fetch(server: Any, file: RemoteFile, home: Path) -> None:
    path = _local_path(file, home)
    temporary = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _resume(server, file, temporary)
            break
        except _InterruptedDownloadError as error:
            if attempt == ATTEMPTS:
                received = temporary.stat().st_size if temporary.exists() else 0
                raise DataError(
                    f"{file.address}: the download was interrupted at byte {received:,} of {file.bytes:,}, "
                    f"{ATTEMPTS} times ({error}); run again to resume it: the partial download is kept in {home}"
                ) from None
        time.sleep(PAUSE * 2 ** (attempt - 1))
    _check_unchanged(server, file, temporary)
    flush(temporary)
    with temporary.open("rb") as content:
        digest = file_digest(content, "sha256").hexdigest()
    os.replace(temporary, path)
    write_json(_record(file, home), {"address": file.address, "bytes": file.bytes, "tag": file.tag, "sha256": digest})


def _resume(server: Any, file: RemoteFile, temporary: Path) -> None:
    """Download the missing rest of a file; from the beginning if the server does not support byte ranges."""
    begin = temporary.stat().st_size if temporary.exists() else 0
    if begin == file.bytes:
        temporary.touch()
        return
    try:
        stream, begin = open_at(server, file.address, begin if begin < file.bytes else 0, file.tag)
    except Exception as error:  # every file system has errors of its own
        raise _InterruptedDownloadError(_message(error)) from None
    with temporary.open("r+b" if temporary.exists() else "wb") as out:
        out.truncate(begin)
        out.seek(begin)
        try:
            while block := _next(stream):
                out.write(block)
                if out.tell() > file.bytes:
                    break  # not the file that was listed
        finally:
            stream.close()
        received = out.tell()
    if received != file.bytes:
        _check_unchanged(server, file, temporary)
        raise _InterruptedDownloadError("the server sent fewer or more bytes than the file has")


def _next(stream: Any) -> bytes:
    """Read a block; an error here is the server's, not the local disk's."""
    try:
        block: bytes = stream.read(BLOCK)
    except Exception as error:  # every file system has errors of its own
        raise _InterruptedDownloadError(_message(error)) from None
    return block


def _check_unchanged(server: Any, file: RemoteFile, temporary: Path) -> None:
    """DataError when the file's size or tag on the server changed: the partial download is of another version."""
    server.invalidate_cache()
    try:
        now = remote_file(file.address, server.info(server._strip_protocol(file.address)))
    except DataError:
        raise
    except Exception as error:  # every file system has errors of its own
        raise DataError(f"{file.address}: the server cannot be queried again: {_message(error)}; run again") from None
    if now != file:
        temporary.unlink()
        raise DataError(f"{file.address}: the file changed on the server while it was fetched; run 'cursus data' again")


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _is_downloaded(file: RemoteFile, home: Path) -> bool:
    path = _local_path(file, home)
    return _record(file, home).is_file() and path.is_file() and path.stat().st_size == file.bytes


def _local_path(file: RemoteFile, home: Path) -> Path:
    return home / file.identity / file.file_name


def _record(file: RemoteFile, home: Path) -> Path:
    """Record of the finished download with its sha256; written last."""
    return home / file.identity / "_fetched.json"
