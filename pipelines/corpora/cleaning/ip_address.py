"""ip_address: public IP addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address

from pipelines.corpora.cleaning import Mask, mask_matches

_ADDRESS = re.compile(
    r"(?<![\w.:/-])(?<!ersion )(?:"
    r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){3,7})(?![\w:]|\.[0-9])",
    re.ASCII,
)
_CANDIDATE = re.compile(r"[0-9]\.[0-9]{1,3}\.[0-9]|[0-9A-Fa-f]:[0-9A-Fa-f:]")


class IpAddress(Mask, name="ip_address"):
    """Mask public IPv4 and IPv6 addresses; private, local and documentation ones (RFC 6890) identify no person and are
    kept.

    Version and section numbers look the same: those after the word "version" and those of four single digits are kept.
    """

    placeholder: str = "[IP]"
    """Text that replaces each match."""

    def make_mask(self) -> Callable[[str], tuple[str, int]]:
        """A function that masks a text and counts the matches."""
        mask = mask_matches(_ADDRESS, self.placeholder, _is_public)
        return lambda text: mask(text) if _CANDIDATE.search(text) else (text, 0)


def _is_public(match: re.Match[str]) -> bool:
    try:
        return len(match[0]) > len("8.8.8.8") and ip_address(match[0]).is_global
    except ValueError:
        return False
