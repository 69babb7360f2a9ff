"""payment_card: numbers of credit and debit cards."""

from __future__ import annotations

import re
from collections.abc import Callable

from pipelines.corpora.cleaning import Mask, mask_with

_GROUPED = (
    r"[0-9]{4}(?P<between>[ -])[0-9]{4}(?P=between)[0-9]{4}(?P=between)[0-9]{1,7}|[0-9]{4}[ -][0-9]{6}[ -][0-9]{5}"
)
_NUMBER = re.compile(rf"(?<![A-Za-z0-9_])(?<![0-9][.-])(?:{_GROUPED}|[0-9]{{13,19}})(?![A-Za-z0-9_])(?![.-][0-9])")
_WORTH_A_LOOK = re.compile(r"[0-9]{13}|[0-9]{4}[ -][0-9]{4}")
_ISSUED = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|2[2-7]|35|6[05])[0-9]{14}|3[47][0-9]{13}|62[0-9]{14,17}"
)


class PaymentCard(Mask, name="payment_card"):
    """Card numbers of the large issuers (Visa, Mastercard, American Express, JCB, Discover, UnionPay) whose check digit holds.

    ISO/IEC 7812-1, annex B (Luhn). One in ten other numbers of the same length and head passes as well.
    """

    placeholder: str = "[CARD]"
    """What stands in its place."""

    def masking(self) -> Callable[[str], tuple[str, int]]:
        """The mask."""
        mask = mask_with(_NUMBER, self.placeholder, _checks)
        return lambda text: mask(text) if _WORTH_A_LOOK.search(text) else (text, 0)


def _checks(found: re.Match[str]) -> bool:
    number = found[0].replace(" ", "").replace("-", "")
    if not _ISSUED.fullmatch(number):
        return False
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(number)))
    return sum(digit - 9 * (digit > 9) for digit in doubled) % 10 == 0
