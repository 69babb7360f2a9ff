"""id_number: Chinese resident identity numbers and US social security numbers."""

from __future__ import annotations

import re
from collections.abc import Callable

from pipelines.corpora.cleaning import Mask, mask_matches

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_])(?<![0-9][.-])(?:"
    r"(?P<resident>[1-9][0-9]{5}(?:18|19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]{3}[0-9Xx])"
    r"|(?!000|666)[0-8][0-9]{2}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}"
    r")(?![A-Za-z0-9_])(?![.-][0-9])"
)
_CANDIDATE = re.compile(r"[0-9]{17}|[0-9]-[0-9]{2}-[0-9]{4}")
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CHECKS = "10X98765432"


class IdNumber(Mask, name="id_number"):
    """Mask Chinese resident identity numbers with a valid date and check digit (GB 11643-1999), and US social security
    numbers.

    Chinese numbers of 15 digits, issued until 1999, have no check digit and are kept. Of a social security number only
    the form can be checked: 000, 666 and 900 to 999, 00 and 0000 were never issued.
    """

    placeholder: str = "[ID]"
    """Text that replaces each match."""

    def make_mask(self) -> Callable[[str], tuple[str, int]]:
        """A function that masks a text and counts the matches."""
        mask = mask_matches(_NUMBER, self.placeholder, _checks)
        return lambda text: mask(text) if _CANDIDATE.search(text) else (text, 0)


def _checks(match: re.Match[str]) -> bool:
    number = match["resident"]
    if number is None:
        return True
    remainder = sum(weight * int(digit) for weight, digit in zip(_WEIGHTS, number, strict=False)) % 11
    return _CHECKS[remainder] == number[-1].upper()
