"""Addresses of files on servers, `s3://bucket/prefix/*.jsonl.zst`, and how a server is reached, without any secret in it.

What is written in params.yaml is committed, copied into pins and shown on pages. Secrets stay where every client of a
server looks for them anyhow: the environment, or a profile in the user's home.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pipelines.safety.redaction import names_secret

_ADDRESS = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def is_address(path: str) -> bool:
    """Whether a path of params.yaml stands on a server; `file://` is this machine."""
    return bool(_ADDRESS.match(path)) and not path.lower().startswith("file://")


def local_path(path: str) -> str:
    """A path without the `file://` that may stand before it."""
    return unquote(path[len("file://") :]) if path.lower().startswith("file://") else path


def secret_in(storage: Mapping[str, Any], prefix: str = "") -> str | None:
    """The first key of the settings of a server, at any depth, that names a secret, or whose address holds one."""
    for key, value in storage.items():
        if names_secret(str(key)):
            return f"{prefix}{key}"
        inner = value if isinstance(value, (list, tuple)) else [value]
        for one in inner:
            if isinstance(one, Mapping) and (found := secret_in(one, f"{prefix}{key}.")):
                return found
            if isinstance(one, str) and is_address(one) and secret_in_address(one):
                return f"{prefix}{key}"
    return None


def secret_in_address(address: str) -> str | None:
    """The part of an address that is a secret: a password, or a query such as `X-Amz-Signature`."""
    parts = urlsplit(address)
    if "@" in parts.netloc:
        return "the user and password before '@'"
    return next((f"the query {key!r}" for key, _ in parse_qsl(parts.query) if names_secret(key)), None)
