"""What a served model may cost: bytes, milliseconds, and points of the score of the model that it replaces.

Limits.parse("10 MB, 5 ms, -2 points")
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Self

from pipelines.errors import CursusError

EXAMPLE = "10 MB, 5 ms, -2 points"
UNITS = {
    "kb": ("bytes", 1e3),
    "mb": ("bytes", 1e6),
    "gb": ("bytes", 1e9),
    "kib": ("bytes", 2.0**10),
    "mib": ("bytes", 2.0**20),
    "gib": ("bytes", 2.0**30),
    "us": ("milliseconds", 1e-3),
    "ms": ("milliseconds", 1.0),
    "s": ("milliseconds", 1e3),
    "point": ("loss", 0.01),
    "points": ("loss", 0.01),
}
"""Unit, in lower case → the limit that it is of, and its size in bytes, milliseconds or shares of the score."""
NAMES = {"bytes": "size", "milliseconds": "time", "loss": "score"}
_PART = re.compile(r"(?P<sign>[+-]?)(?P<value>\d+(?:\.\d+)?|\.\d+)\s*(?P<unit>[^\d\s]\S*)?")


@dataclass(frozen=True)
class Limits:
    """Upper limits; None where there is none."""

    bytes: float | None = None
    """Size of the files that serving needs."""
    milliseconds: float | None = None
    """Time of an answer to one example."""
    loss: float | None = None
    """Loss of the score, as a share: 0.02 are two points; below zero, what is to be gained."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Limits as a person writes them, separated by commas. Raises CursusError naming the part that is none."""
        known: dict[str, float] = {}
        for part in text.replace("\N{MINUS SIGN}", "-").split(","):
            name, value = _limit(text, part.strip())
            if name in known:
                raise CursusError(f'--within "{text}": the {NAMES[name]} is limited twice; keep one')
            known[name] = value
        return cls(**known)

    def __str__(self) -> str:
        parts = []
        if self.bytes is not None:
            parts.append(megabytes(self.bytes))
        if self.milliseconds is not None:
            parts.append(f"{self.milliseconds:g} ms")
        if self.loss is not None:
            parts.append(f"{-100 * self.loss:+g} points".replace("-", "−") if self.loss else "0 points")
        return ", ".join(parts)


def _limit(text: str, part: str) -> tuple[str, float]:
    """Name and value of one limit. Raises CursusError."""
    match = _PART.fullmatch(part)
    if match is None:
        raise CursusError(f'--within "{text}": {part!r} is no limit; write for example "{EXAMPLE}"')
    value, unit = float(match["value"]), match["unit"]
    if unit is None:
        raise CursusError(
            f'--within "{text}": {part} has no unit; write megabytes, milliseconds or points, for example "{EXAMPLE}"'
        )
    if unit.lower() not in UNITS:
        raise CursusError(
            f'--within "{text}": {unit!r} is no unit of size, time or score; known: KB, MB, GB, KiB, MiB, GiB, us, ms, '
            "s, points"
        )
    name, size = UNITS[unit.lower()]
    if name == "loss":
        return name, -value * size if match["sign"] == "+" else value * size
    if not value or match["sign"] == "-" or math.isinf(value):
        raise CursusError(f'--within "{text}": no model has {part}; a {NAMES[name]} is above zero')
    return name, value * size


def megabytes(value: float) -> str:
    """`12 MB`, `3.4 MB`, `0.12 MB`."""
    size = value / 1e6
    return f"{size:.0f} MB" if size >= 10 else f"{size:.1f} MB" if size >= 1 else f"{size:.2g} MB"
