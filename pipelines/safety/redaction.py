"""Remove secrets from texts: passwords in URLs, signed queries, values of secret environment variables."""

from __future__ import annotations

import os
import re

_NAMES_SECRET = re.compile(
    r"secret|passw|token|credential|signature|authorization|auth_string|cookie|(^|[_-])(key|sig|sas|pwd)($|[_-])",
    re.IGNORECASE,
)
_USER = re.compile(r"(?<=://)[^\s/'\"<>]*@")
_QUERY = re.compile(r"(?P<key>[?&][^=&\s'\"]+)=(?P<value>[^&\s'\"]+)")
HIDDEN = "***"
SHORTEST = 8
"""Minimum characters of a variable's value that is searched for; shorter values are words that occur in every text."""


def is_secret_name(key: str) -> bool:
    """Whether the value of `key` (in settings, a query or the environment) is a secret."""
    return _NAMES_SECRET.search(key) is not None


def redacted(text: str) -> str:
    """`text` with `***` in place of the user and password of every URL, of secret query values, and of the values of
    this process's environment variables with secret names."""
    text = _USER.sub(f"{HIDDEN}@", text)
    text = _QUERY.sub(_redact_query, text)
    for name, value in os.environ.items():
        if len(value) >= SHORTEST and value in text and is_secret_name(name):
            text = text.replace(value, HIDDEN)
    return text


def _redact_query(match: re.Match[str]) -> str:
    """A query parameter with its value hidden, if its name is that of a secret."""
    return f"{match['key']}={HIDDEN}" if is_secret_name(match["key"][1:]) else match[0]
