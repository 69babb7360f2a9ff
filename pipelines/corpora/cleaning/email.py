"""email: e-mail addresses."""

from __future__ import annotations

import re
from collections.abc import Callable

from pipelines.corpora.cleaning import Mask, mask_matches

_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9](?:[A-Za-z0-9._%+-]{0,62}[A-Za-z0-9_%+-])?@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9_(-]|\.[A-Za-z0-9])"
)


class Email(Mask, name="email"):
    """Mask e-mail addresses (RFC 5321; ASCII, with a domain), but not `@property` or `x@y.sum(0)`."""

    placeholder: str = "[EMAIL]"
    """Text that replaces each match."""

    def make_mask(self) -> Callable[[str], tuple[str, int]]:
        """A function that masks a text and counts the matches."""
        mask = mask_matches(_ADDRESS, self.placeholder)
        return lambda text: mask(text) if "@" in text else (text, 0)
