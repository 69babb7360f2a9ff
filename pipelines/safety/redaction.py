"""Remove secrets from texts: passwords in URLs, signed queries, headers, values of secret environment variables."""

from __future__ import annotations

import logging
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

_NAMES_SECRET = re.compile(
    r"secret|passw|passphrase|token|credential|signature|authorization|auth_string|cookie|^cursus_(account|notify)$"
    r"|(^|[_-])(key|sig|sas|pwd|pass)($|[_-])",
    re.IGNORECASE,
)
_NO_SECRETS = frozenset({"PWD", "OLDPWD"})
"""Variables that a shell sets to folders."""
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# the second form has a "/" in the password; digits before that "/" are a port, and the address has no password
_USER = re.compile(r"(?<=://)(?:[^\s/'\"<>]*@|[^\s/:'\"<>@]*:(?!\d+/)[^\s'\"<>@]*@)")
_QUERY = re.compile(r"(?P<before>[?&]|\b(?=AWSAccessKeyId=))(?P<key>[^=&?\s'\"]+)=(?P<value>[^&\s'\"]+)")
_HEADER = re.compile(r"\b(?P<scheme>Basic|Bearer) +[A-Za-z0-9+/._~-]{8,}=*")
HIDDEN = "***"
SHORTEST = 8
"""Minimum characters of a variable's value that is searched for; shorter values are words that occur in every text."""


def is_secret_name(key: str) -> bool:
    """Whether the value of `key` (in settings, a query or the environment) is a secret. `AWSAccessKeyId` is read as
    four words."""
    return key not in _NO_SECRETS and _NAMES_SECRET.search(_WORD_BEGINS.sub("_", key)) is not None


def redacted(text: str) -> str:
    """`text` with `***` in place of the user and password of every URL, of secret query values and headers, and of the
    values of this process's environment variables with secret names. Paths are shown."""
    text = _USER.sub(f"{HIDDEN}@", text)
    text = _QUERY.sub(_redact_query, text)
    text = _HEADER.sub(rf"\g<scheme> {HIDDEN}", text)
    for value in _secret_values():
        text = text.replace(value, HIDDEN)
    return text


def _secret_values() -> list[str]:
    """Values of secret variables, the longest first, the passwords of those that are `name:password`, and each of
    several addresses."""
    values = {value for name, value in os.environ.items() if is_secret_name(name) and not os.path.exists(value)}
    values |= {password for value in values for _, colon, password in [value.partition(":")] if colon}
    values |= {word for value in values for word in value.split() if "://" in word}  # CURSUS_NOTIFY has several
    return sorted((value for value in values if len(value) >= SHORTEST), key=len, reverse=True)


def _redact_query(match: re.Match[str]) -> str:
    """A query parameter with its value hidden, if its name is that of a secret."""
    return f"{match['before']}{match['key']}={HIDDEN}" if is_secret_name(match["key"]) else match[0]


@contextmanager
def redacted_errors() -> Iterator[None]:
    """Hide secrets in the message of whatever error leaves the block or the decorated function.

    Prefect records the message of an error as the state of its run, in events too. An error whose message is not made
    of its arguments is replaced by a RuntimeError.
    """
    try:
        yield
    except Exception as error:
        before = str(error)
        if redacted(before) != before:
            error.args = tuple(redacted(value) if isinstance(value, str) else value for value in error.args)
            if redacted(str(error)) != str(error):
                raise RuntimeError(f"{type(error).__name__}: {redacted(before)}") from None
        raise


class RedactedRecord(logging.LogRecord):
    """A log record whose message and traceback hide secrets, whatever handler writes it."""

    def getMessage(self) -> str:
        """The message, redacted."""
        if self.exc_info and self.exc_info[0] is not None and not self.exc_text:
            # a formatter writes this text where there is one, and formats the exception itself where there is none
            self.exc_text = redacted("".join(traceback.format_exception(*self.exc_info)).rstrip("\n"))
        return redacted(super().getMessage())


def redact_logs(records: type[RedactedRecord] = RedactedRecord) -> None:
    """Have every logger of this process write redacted `records`."""
    logging.setLogRecordFactory(records)
