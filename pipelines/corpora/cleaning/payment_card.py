"""payment_card: credit and debit card numbers."""

from __future__ import annotations

import re
from collections.abc import Callable

from pipelines.corpora.cleaning import Mask, mask_matches

_GROUPED = (
    r"[0-9]{4}(?P<between>[ -])[0-9]{4}(?P=between)[0-9]{4}(?P=between)[0-9]{1,7}|[0-9]{4}[ -][0-9]{6}[ -][0-9]{5}"
)
_NUMBER = re.compile(rf"(?<![A-Za-z0-9_])(?<![0-9][.-])(?:{_GROUPED}|[0-9]{{13,19}})(?![A-Za-z0-9_])(?![.-][0-9])")
_CANDIDATE = re.compile(r"[0-9]{13}|[0-9]{4}[ -][0-9]{4}")
_ISSUERS = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|2[2-7]|35|6[05])[0-9]{14}|3[47][0-9]{13}|62[0-9]{14,17}"
)


class PaymentCard(Mask, name="payment_card"):
    """Mask card numbers of Visa, Mastercard, American Express, JCB, Discover and UnionPay with a valid check digit.

    ISO/IEC 7812-1, annex B (Luhn). One in ten other numbers of the same length and prefix is masked as well.
    """

    placeholder: str = "[CARD]"
    """Text that replaces each match."""

    def make_mask(self) -> Callable[[str], tuple[str, int]]:
        """A function that masks a text and counts the matches."""
        mask = mask_matches(_NUMBER, self.placeholder, _checks)
        return lambda text: mask(text) if _CANDIDATE.search(text) else (text, 0)


def _checks(match: re.Match[str]) -> bool:
    number = match[0].replace(" ", "").replace("-", "")
    if not _ISSUERS.fullmatch(number):
        return False
    doubled = (int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(number)))
    return sum(digit - 9 * (digit > 9) for digit in doubled) % 10 == 0
