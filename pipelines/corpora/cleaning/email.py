"""email: e-mail addresses."""

from __future__ import annotations

import re
from collections.abc import Callable

from pipelines.corpora.cleaning import Mask, mask_with

_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9](?:[A-Za-z0-9._%+-]{0,62}[A-Za-z0-9_%+-])?@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9_(-]|\.[A-Za-z0-9])"
)


class Email(Mask, name="email"):
    """E-mail addresses (RFC 5321, as people write them: ASCII, with a domain); not `@property`, nor `x@y.sum(0)`."""

    placeholder: str = "[EMAIL]"
    """What stands in its place."""

    def masking(self) -> Callable[[str], tuple[str, int]]:
        """The mask."""
        mask = mask_with(_ADDRESS, self.placeholder)
        return lambda text: mask(text) if "@" in text else (text, 0)
