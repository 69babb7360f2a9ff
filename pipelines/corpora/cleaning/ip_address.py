"""ip_address: public addresses of computers."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address

from pipelines.corpora.cleaning import Mask, mask_with

_ADDRESS = re.compile(
    r"(?<![\w.:/-])(?<!ersion )(?:"
    r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){3,7})(?![\w:]|\.[0-9])",
    re.ASCII,
)
_WORTH_A_LOOK = re.compile(r"[0-9]\.[0-9]{1,3}\.[0-9]|[0-9A-Fa-f]:[0-9A-Fa-f:]")


class IpAddress(Mask, name="ip_address"):
    """Public IPv4 and IPv6 addresses; private, local and documentation ones (RFC 6890) identify nobody and stay.

    Numbers of versions and sections look the same: those behind the word "version" and those of four single digits stay.
    """

    placeholder: str = "[IP]"
    """What stands in its place."""

    def masking(self) -> Callable[[str], tuple[str, int]]:
        """The mask."""
        mask = mask_with(_ADDRESS, self.placeholder, _is_public)
        return lambda text: mask(text) if _WORTH_A_LOOK.search(text) else (text, 0)


def _is_public(found: re.Match[str]) -> bool:
    try:
        return len(found[0]) > len("8.8.8.8") and ip_address(found[0]).is_global
    except ValueError:
        return False
