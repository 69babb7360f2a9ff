"""Pseudo-random numbers that depend on a text's source alone."""

from __future__ import annotations

from hashlib import sha256


def hashed_draw(purpose: str, source: str, below: int) -> int:
    """A pseudo-random number below `below`, derived from the purpose and the source."""
    return int.from_bytes(sha256(f"{purpose} {source}".encode()).digest()[:8], "big") % below
