"""Remote files: listed, identified by their metadata on the server, and downloaded once.

    s3://bucket/corpus/*.jsonl.zst     ─▶ listed: name, bytes, tag      ─▶ data/remote/<identity>/part-0.jsonl.zst
    https://host/corpus/part-*.txt.gz     (ETag, checksum or date)         read from there like any other file

Servers are accessed through fsspec. A file is downloaded whole before it is read: a step that is repeated or resumed
reads the same bytes without the network, and several processes can read parts of it. `identity` hashes the address, the
size and the tag, so that a changed file is another file. Reasons: docs/decisions/0014-remote-sources.md.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from pipelines.corpora.reading.extensions import FORMATS, file_format, is_selected
from pipelines.corpora.reading.finding import MOST_FILES, too_many_files
from pipelines.corpora.reading.servers import file_system_of, is_http
from pipelines.errors import DataError

AT_ONCE = 16
"""Concurrent metadata requests to a web server."""

_TAGS = ("ETag", "etag", "Content-MD5", "md5", "md5Hash", "checksum", "Digest", "LastModified", "Last-Modified")
_DATES = ("last_modified", "mtime", "modified", "updated", "created")


@dataclass(frozen=True)
class RemoteFile:
    """A remote file with its metadata on the server."""

    address: str
    bytes: int
    tag: str
    """An ETag, a checksum or a date; it changes with the file."""

    @property
    def identity(self) -> str:
        """Twenty hex digits that identify this content at this address."""
        return sha256(f"{self.address}\0{self.bytes}\0{self.tag}".encode()).hexdigest()[:20]

    @property
    def file_name(self) -> str:
        """The last part of the address, without its query."""
        return _last(self.address)


def find_remote(
    address: str, storage: Mapping[str, Any], formats: tuple[str, ...] = FORMATS, most: int = MOST_FILES
) -> dict[str, RemoteFile]:
    """Files of `formats` at an address, a prefix or a glob, by their names in `source` columns, sorted.

    DataError for a server that cannot be reached, no matching file, more than `most` files, and a file without metadata
    that would show a change.
    """
    server = file_system_of(address, storage)
    try:
        files = dict(_listed(server, address, formats, most))
    except DataError:
        raise
    except Exception as error:  # every file system has errors of its own
        cause = error.__cause__ or error
        if isinstance(error, FileNotFoundError) and getattr(cause, "status", 404) == 404 and not _is_network(cause):
            raise DataError(f"{address}: there is no such file; check the address in params.yaml") from None
        raise DataError(
            f"{address}: the server cannot be queried: {type(cause).__name__}: {cause}; check the address, the network "
            "and "
            "the credentials in the environment"
        ) from None
    if not files:
        raise DataError(
            f"{address}: no file with one of the extensions {', '.join(formats)} (or .gz, .zst of these) is listed "
            "there; "
            "on a server without directory listings, give the address of every file"
        )
    return dict(sorted(files.items()))


def remote_file(address: str, info: Mapping[str, Any]) -> RemoteFile:
    """A remote file from fsspec's `info`. DataError without a size, or without a tag that changes with the file."""
    tag = next((f"{key.lower()} {_plain(info[key])}" for key in (*_TAGS, *_DATES) if info.get(key)), None)
    if tag is None or info.get("size") is None:
        raise DataError(
            f"{address}: the server gives no size, or neither an ETag nor a date, so that a change could not be "
            "detected; "
            "download the file with 'dvc import-url' and use the path of the copy"
        )
    return RemoteFile(address, int(info["size"]), tag)


def _listed(server: Any, address: str, formats: tuple[str, ...], most: int) -> Iterator[tuple[str, RemoteFile]]:
    pattern = server._strip_protocol(address)
    if "*" in address or (glob.has_magic(address) and not is_http(server)):
        base = address[: min(address.find(each) for each in "*?[" if each in address)].rpartition("/")[0]
        infos = server.glob(pattern, detail=True)
    elif address.endswith("/") or not (is_http(server) or server.isfile(pattern)):
        base = address
        infos = server.find(pattern, detail=True)
        infos = {path: info for path, info in infos.items() if is_selected(_last(path), formats)}
    else:
        base = address.rpartition("/")[0]
        infos = {pattern: server.info(pattern)}
    infos = {path: info for path, info in infos.items() if info.get("type", "file") == "file"}
    if len(infos) > most:
        raise DataError(too_many_files(address, most))
    start = len(_name(server, base).rstrip("/")) + 1
    for path in infos:
        file_format(PurePosixPath(_last(path)), formats)
    without_size = [path for path, info in infos.items() if info.get("size") is None]
    with ThreadPoolExecutor(AT_ONCE) as pool:  # listings of web servers are plain links
        infos |= dict(zip(without_size, pool.map(server.info, without_size), strict=True))
    for path, info in infos.items():
        yield _name(server, path)[start:], remote_file(server.unstrip_protocol(path), info)


def _name(server: Any, path: str) -> str:
    """A readable address: without its query and without escapes."""
    whole: str = server.unstrip_protocol(server._strip_protocol(path))
    return unquote(whole.partition("?")[0]) if is_http(server) else whole


def _last(path: str) -> str:
    if path.lower().startswith(("http://", "https://")):
        path = unquote(urlsplit(path).path)
    return path.rstrip("/").rpartition("/")[2]


def _plain(value: Any) -> str:
    """A tag as text; a date in seconds, because listings and file metadata may format it differently."""
    return str(value.timestamp() if hasattr(value, "timestamp") else value).strip('"')


def _is_network(error: BaseException) -> bool:
    return isinstance(error, OSError) and not isinstance(error, FileNotFoundError)
