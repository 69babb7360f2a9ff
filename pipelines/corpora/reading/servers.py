"""fsspec file systems, with settings that hold no secret, and remote files as byte streams."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pipelines.components import did_you_mean
from pipelines.errors import DataError

BLOCK = 8 * 2**20
"""Bytes per request."""

_IDLE = 60
"""Seconds without data after which a connection counts as lost."""


def file_system_of(address: str, storage: Mapping[str, Any]) -> Any:
    """The fsspec file system of an address; no request is made yet.

    DataError for an unknown protocol, a protocol whose package is not installed, and an unknown setting.
    """
    import fsspec

    kind = address.partition("://")[0].lower()
    try:
        known = fsspec.get_filesystem_class(kind)
    except ValueError:
        kinds = fsspec.available_protocols()
        raise DataError(f"{address}: unknown protocol {kind}://.{did_you_mean(kind, kinds)}") from None
    except ImportError as error:
        extra = "; pip install 'cursus[s3]'" if kind in ("s3", "s3a") else ""
        raise DataError(f"{address}: a package is missing: {error}{extra}") from None
    names = {name for each in known.__mro__ for name in inspect.signature(each.__init__).parameters} - {
        "self",
        "kwargs",
    }
    for name in storage:
        if name not in names | {"profile"}:
            raise DataError(f"{address}: storage has the unknown setting {name!r}.{did_you_mean(name, names)}")
    settings = dict(storage)
    if kind in ("http", "https"):
        settings["client_kwargs"] = _http_client_settings() | settings.get("client_kwargs", {})
    try:
        server = fsspec.core.url_to_fs(address, use_listings_cache=False, **settings)[0]
        server.invalidate_cache()  # cached listings would hide changes
        return server
    except Exception as error:  # every file system has errors of its own
        raise DataError(f"{address}: these settings cannot be used: {type(error).__name__}: {error}") from None


def is_http(server: Any) -> bool:
    """Whether the file system is HTTP: links and streams instead of directory entries and byte ranges."""
    return "http" in server.protocol


def open_at(server: Any, address: str, begin: int, tag: str) -> tuple[Any, int]:
    """Open a stream at byte `begin`, or at 0 when the server does not support ranges; returns the stream and its
    offset.

    Raises the file system's exceptions.
    """
    path = server._strip_protocol(address)
    if is_http(server):
        kind, _, value = tag.partition(" ")
        # If-Range: a changed file is sent whole, so that ranges of two versions are never joined
        headers = {"Range": f"bytes={begin}-", "If-Range": f'"{value}"' if kind == "etag" else value} if begin else {}
        stream = server.open(path, block_size=0, headers=headers)
        return stream, begin if stream.r.status == 206 else 0
    stream = server.open(path, "rb", block_size=BLOCK, cache_type="readahead")
    stream.seek(begin)
    return stream, begin


def _http_client_settings() -> dict[str, Any]:
    """HTTP client settings: no content decoding, proxies of the environment, no total timeout for long files."""
    import aiohttp

    return {
        "auto_decompress": False,
        "headers": {"Accept-Encoding": "identity"},
        "trust_env": True,
        "timeout": aiohttp.ClientTimeout(total=None, sock_connect=_IDLE, sock_read=_IDLE),
    }
