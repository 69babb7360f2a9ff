"""Texts without the secrets that got into them: passwords of addresses, signed queries, values of secret variables."""

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
"""Characters of a variable's value that is looked for; shorter ones are words that stand in every text."""


def names_secret(key: str) -> bool:
    """Whether what stands under `key` (of settings, of a query, of the environment) is a secret."""
    return _NAMES_SECRET.search(key) is not None


def redacted(text: str) -> str:
    """`text` with `***` for the user and password of every address, for secret queries, and for the values of this process's
    environment variables whose names say that they are secret."""
    text = _USER.sub(f"{HIDDEN}@", text)
    text = _QUERY.sub(lambda found: f"{found['key']}={HIDDEN}" if names_secret(found["key"][1:]) else found[0], text)
    for name, value in os.environ.items():
        if len(value) >= SHORTEST and value in text and names_secret(name):
            text = text.replace(value, HIDDEN)
    return text
