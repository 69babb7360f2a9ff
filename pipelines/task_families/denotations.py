"""Equality of the denotations of two lists of answers, by the rules of WikiTableQuestions' evaluation script.

Pasupat and Liang 2015 (arXiv:1508.00305), script of release 1.0: both lists, as sets of values, have the same size, and
every correct value is matched by a given one. Values are numbers, dates (`xxxx-xx-xx`) or else texts, compared without
case, accents, footnote marks, a trailing note in brackets, outer quotes and a final full stop. The script also uses the
annotated numeric value of an answer such as `1,234`; the public tsv files lack it, so here such an answer is a text.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_SAME = {**dict.fromkeys("‘’´`", "'"), **dict.fromkeys("“”", '"'), **dict.fromkeys("‐‑‒–—−", "-")}
_TABLE = str.maketrans(_SAME)
_FOOTNOTES = re.compile(r"((?<!^)\[[^\]]*\]|\[\d+\]|[•♦†‡*#+])*$")
_BRACKETS = re.compile(r"(?<!^)( \([^)]*\))*$")
_QUOTED = re.compile(r'^"([^"]*)"$')
_DATE = re.compile(r"(xx|xxxx|-?\d+)-(xx|\d+)-(xx|\d+)")
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Value:
    """An answer: its normalised text, and its number or its year, month and day (−1: any)."""

    text: str
    number: float | None = None
    date: tuple[int, int, int] | None = None

    def matches(self, other: Value) -> bool:
        """Whether both denote the same value."""
        if self.text == other.text:
            return True
        if self.number is not None and other.number is not None:
            return abs(self.number - other.number) < _TOLERANCE
        return self.date is not None and self.date == other.date


def same_denotation(right: Sequence[str], given: Sequence[str]) -> bool:
    """Whether `given` has the same denotation as `right`, in any order."""
    expected, answered = (_values(texts) for texts in (right, given))
    return len(expected) == len(answered) and all(any(value.matches(other) for other in answered) for value in expected)


def normalized(text: str) -> str:
    """Normalise a text for comparison."""
    text = "".join(one for one in unicodedata.normalize("NFKD", text) if unicodedata.category(one) != "Mn")
    text = text.translate(_TABLE)
    before = None
    while before != text:
        before = text
        text = _FOOTNOTES.sub("", text.strip())
        text = _BRACKETS.sub("", text.strip())
        text = _QUOTED.sub(r"\1", text.strip())
    return " ".join(text.removesuffix(".").split()).lower()


def _values(texts: Sequence[str]) -> list[Value]:
    """The distinct values of the texts."""
    values = dict.fromkeys(_value(text) for text in texts)
    return [value for index, value in enumerate(values) if not any(value.matches(other) for other in [*values][:index])]


def _value(text: str) -> Value:
    plain = normalized(text)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return Value(plain, number=number)
    if parts := _DATE.fullmatch(text.strip().lower()):
        year, month, day = (-1 if part.startswith("x") else int(part) for part in parts.groups())
        known = (
            (year, month, day) != (-1, -1, -1) and (month == -1 or 1 <= month <= 12) and (day == -1 or 1 <= day <= 31)
        )
        if known:
            return Value(plain, number=float(year)) if month == day == -1 else Value(plain, date=(year, month, day))
    return Value(plain)
