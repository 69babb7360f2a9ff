"""phone: Chinese, North American and international telephone numbers."""

from __future__ import annotations

import re
from collections.abc import Callable

from pipelines.corpora.cleaning import Mask, mask_matches

_BEFORE = r"(?<![A-Za-z0-9_/+])(?<![0-9][.,-])"
_AFTER = r"(?![A-Za-z0-9_/])(?!\)?\.[A-Za-z0-9])"
_MOBILE = r"(?:(?:\+|00)86[ -]?)?1[3-9][0-9](?:[0-9]{8}|-[0-9]{4}-[0-9]{4}|\ [0-9]{4}\ [0-9]{4})"
_LANDLINE = (
    r"(?:(?:\+|00)86[ -]?(?:10|2[0-9]|[3-9][0-9]{2})|\(0(?:10|2[0-9]|[3-9][0-9]{2})\)|（0(?:10|2[0-9]|[3-9][0-9]{2})）"
    r"|0(?:10|2[0-9]|[3-9][0-9]{2})(?=[ -]))[ -]?[2-9](?:[0-9]{6,7}|[0-9]{2,3}[ -][0-9]{4})(?:-[0-9]{1,5})?"
)
_NORTH_AMERICAN = (
    r"(?:\+?1[-. ])?(?:\([2-9][0-9]{2}\)\ ?|[2-9][0-9]{2}(?P<between>[-. ]))"
    r"[2-9][0-9]{2}(?(between)(?P=between)|[-. ])[0-9]{4}"
)
_INTERNATIONAL = r"\+(?!86)[1-9][0-9]{0,2}(?:[ -]\(?[0-9]{1,8}\)?){2,6}|\+(?!86)[1-9][0-9]{9,13}"
_NUMBER = re.compile(f"{_BEFORE}(?:{_MOBILE}|{_LANDLINE}|{_NORTH_AMERICAN}|{_INTERNATIONAL}){_AFTER}")
_CANDIDATE = re.compile(r"[0-9]{3}[-. )）]|1[3-9][0-9]{9}|\+[0-9]")


class Phone(Mask, name="phone"):
    """Mask telephone numbers: Chinese mobile and landline, North American with separators, international with a +.

    Chinese mobile numbers have 11 digits and begin with 13 to 19 (numbering plan of the MIIT), North American area and
    exchange codes do not begin with 0 or 1 (NANP), international numbers have 8 to 15 digits (E.164). Digits that
    continue a decimal, a date, a path, a file name or a word are not masked.
    """

    placeholder: str = "[PHONE]"
    """Text that replaces each match."""

    def make_mask(self) -> Callable[[str], tuple[str, int]]:
        """A function that masks a text and counts the matches."""
        mask = mask_matches(_NUMBER, self.placeholder, _has_enough_digits)
        return lambda text: mask(text) if _CANDIDATE.search(text) else (text, 0)


def _has_enough_digits(match: re.Match[str]) -> bool:
    return 8 <= sum(map(str.isdigit, match[0])) <= 20
