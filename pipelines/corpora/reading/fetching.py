"""Files of a server brought to this machine, once each; what broke off goes on from where it broke off."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import file_digest
from pathlib import Path
from typing import Any

from pipelines.corpora.reading.remote import RemoteFile, described
from pipelines.corpora.reading.servers import opened_at, server_of
from pipelines.corpora.shards.writing import write_json
from pipelines.errors import DataError
from pipelines.lineage.disk import flush

ATTEMPTS = 4
PAUSE = 1.0
"""Seconds before the second attempt."""
AT_ONCE = 4
"""Files fetched at the same time."""
BLOCK = 1 << 20


def fetched(files: Sequence[RemoteFile], storage: Mapping[str, Any], home: Path) -> list[Path]:
    """The files on this machine, in order, under `home`; those that are not there yet are fetched, several at once.

    A fetch that breaks off is tried again, ATTEMPTS times in all, PAUSE seconds later and then twice as many. DataError
    when that is not enough, or the file changed on the server; what has come stays for the next run.
    """
    missing = [file for file in files if not _is_here(file, home)]
    if missing:
        server = server_of(missing[0].address, storage)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            waiting = [pool.submit(_fetch, server, file, home) for file in missing]
            try:
                for done in waiting:
                    done.result()
            finally:
                pool.shutdown(cancel_futures=True)
    return [_place(file, home) for file in files]


class _BrokenOffError(Exception):
    """The server or the way to it failed."""


def _fetch(server: Any, file: RemoteFile, home: Path) -> None:
    place = _place(file, home)
    aside = place.with_name(place.name + ".part")
    place.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _go_on(server, file, aside)
            break
        except _BrokenOffError as trouble:
            if attempt == ATTEMPTS:
                come = aside.stat().st_size if aside.exists() else 0
                raise DataError(
                    f"{file.address}: broke off at byte {come:,} of {file.bytes:,}, {ATTEMPTS} times ({trouble}); run "
                    f"again: what has come is kept in {home}"
                ) from None
        time.sleep(PAUSE * 2 ** (attempt - 1))
    _check_unchanged(server, file, aside)
    flush(aside)
    with aside.open("rb") as content:
        digest = file_digest(content, "sha256").hexdigest()
    os.replace(aside, place)
    write_json(_note(file, home), {"address": file.address, "bytes": file.bytes, "tag": file.tag, "sha256": digest})


def _go_on(server: Any, file: RemoteFile, aside: Path) -> None:
    """Fetch what is missing behind what has come; from the beginning if the server gives no stretches of files."""
    begin = aside.stat().st_size if aside.exists() else 0
    if begin == file.bytes:
        aside.touch()
        return
    try:
        stream, begin = opened_at(server, file.address, begin if begin < file.bytes else 0, file.tag)
    except Exception as error:  # every file system has errors of its own
        raise _BrokenOffError(_told(error)) from None
    with aside.open("r+b" if aside.exists() else "wb") as out:
        out.truncate(begin)
        out.seek(begin)
        try:
            while block := _next(stream):
                out.write(block)
                if out.tell() > file.bytes:
                    break  # another file than was listed
        finally:
            stream.close()
        come = out.tell()
    if come != file.bytes:
        _check_unchanged(server, file, aside)
        raise _BrokenOffError("the server ended the file early, or sent more than there is")


def _next(stream: Any) -> bytes:
    """Told apart from what goes wrong on the disk of this machine."""
    try:
        block: bytes = stream.read(BLOCK)
    except Exception as error:  # every file system has errors of its own
        raise _BrokenOffError(_told(error)) from None
    return block


def _check_unchanged(server: Any, file: RemoteFile, aside: Path) -> None:
    """DataError when the server describes the file otherwise than before; what has come is another version then."""
    server.invalidate_cache()
    try:
        now = described(file.address, server.info(server._strip_protocol(file.address)))
    except DataError:
        raise
    except Exception as error:  # every file system has errors of its own
        raise DataError(f"{file.address}: the server cannot be asked again: {_told(error)}; run again") from None
    if now != file:
        aside.unlink()
        raise DataError(f"{file.address}: the file changed on the server while it was fetched; run 'cursus data' again")


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _is_here(file: RemoteFile, home: Path) -> bool:
    place = _place(file, home)
    return _note(file, home).is_file() and place.is_file() and place.stat().st_size == file.bytes


def _place(file: RemoteFile, home: Path) -> Path:
    return home / file.identity / file.file_name


def _note(file: RemoteFile, home: Path) -> Path:
    """Written last: what was fetched, and its sha256."""
    return home / file.identity / "_fetched.json"
