"""Log records of a process that runs flows: a user's mistake is one sentence, without a traceback."""

from __future__ import annotations

from pipelines.errors import CursusError
from pipelines.safety.redaction import RedactedRecord, redacted


class SentenceRecord(RedactedRecord):
    """A redacted record, in which an error of the user is its message: a traceback is for errors of the program.

    Prefect logs the error of a task, and that of its flow, with a traceback.
    """

    def getMessage(self) -> str:
        """The message; of a CursusError, its sentence."""
        error = self.exc_info[1] if self.exc_info else None
        if isinstance(error, CursusError):
            self.exc_info, self.exc_text = None, None
            self.msg, self.args = "%s", (redacted(str(error)),)
        return super().getMessage()
