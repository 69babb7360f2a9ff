"""Reasons for which the data steps drop or change texts, in the current language."""

from __future__ import annotations

from pipelines.messages.translation import ENGLISH, language, message, template, translatable
from pipelines.reports.elements.wording import plain

OF_TABLES = {
    "same text in ": translatable("same text in {table}"),
    "near copy in ": translatable("near copy in {table}"),
}
"""Beginning of a reason that names a table → its sentence."""
CHANGES = {
    "repaired": translatable("repaired"),
    "shortened": translatable("shortened"),
    "masked": translatable("masked"),
}
"""What a cleaning rule did, before its name → how it is shown."""


def reason_text(recorded: str) -> str:
    """A recorded reason, `test: same text in train`, in the current language; one that is not translated as it is."""
    if language() == ENGLISH:
        return recorded
    whole = template(recorded)
    first, separator, rest = recorded.partition(": ")
    if whole != recorded or not separator:
        for begin, sentence in OF_TABLES.items():
            if recorded.startswith(begin):
                return message(sentence, table=plain(recorded.removeprefix(begin)))
        return whole
    begins = template(CHANGES[first]) if first in CHANGES else plain(first)
    return message("{part}: {reason}", part=begins, reason=reason_text(rest))
