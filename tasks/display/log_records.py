"""Log records of a process that runs flows: a mistake of the user, or a lost server, is one sentence, no traceback."""

from __future__ import annotations

import sys

from pipelines.errors import CursusError
from pipelines.safety.redaction import RedactedRecord, redacted


class SentenceRecord(RedactedRecord):
    """A redacted record, in which an error of the user is its message: a traceback is for errors of the program.

    Prefect logs the error of a task and that of its flow with a traceback, also when its server has ended.
    """

    def getMessage(self) -> str:
        """The message; of an error with a sentence, this sentence."""
        error = self.exc_info[1] if self.exc_info else None
        if error is not None and (sentence := _sentence(error)) is not None:
            self.exc_info, self.exc_text = None, None
            self.msg, self.args = "%s", (redacted(sentence),)
        return super().getMessage()


def _sentence(error: BaseException) -> str | None:
    if isinstance(error, CursusError):
        return str(error)
    httpx = sys.modules.get("httpx")  # an error of a library that is not loaded is none of it
    if httpx is not None and isinstance(error, httpx.TransportError):
        return f"Prefect's server does not answer ({type(error).__name__})"
    return None
