"""Addresses of remote files, `s3://bucket/prefix/*.jsonl.zst`, and a check that neither they nor settings hold secrets.

params.yaml is committed, copied into pins and shown on pages. Secrets belong where clients look for them anyway: in the
environment, or in a profile in the user's home.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pipelines.safety.redaction import is_secret_name

_ADDRESS = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def is_address(path: str) -> bool:
    """Whether a path in params.yaml is remote; `file://` is this machine."""
    return bool(_ADDRESS.match(path)) and not path.lower().startswith("file://")


def local_path(path: str) -> str:
    """Remove a leading `file://` from a path."""
    return unquote(path[len("file://") :]) if path.lower().startswith("file://") else path


def secret_in(storage: Mapping[str, Any], prefix: str = "") -> str | None:
    """The first key of server settings, at any depth, that names a secret or whose address holds one."""
    for key, value in storage.items():
        if is_secret_name(str(key)):
            return f"{prefix}{key}"
        inner = value if isinstance(value, (list, tuple)) else [value]
        for item in inner:
            if isinstance(item, Mapping) and (secret := secret_in(item, f"{prefix}{key}.")):
                return secret
            if isinstance(item, str) and is_address(item) and secret_in_address(item):
                return f"{prefix}{key}"
    return None


def secret_in_address(address: str) -> str | None:
    """The part of an address that is a secret: a password, or a query such as `X-Amz-Signature`."""
    parts = urlsplit(address)
    if "@" in parts.netloc:
        return "the user and password before '@'"
    return next((f"the query {key!r}" for key, _ in parse_qsl(parts.query) if is_secret_name(key)), None)
