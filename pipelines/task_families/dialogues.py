"""Dialogues as text: a mark before each turn says who speaks (Wu et al. 2020, TOD-BERT §3.2)."""

from __future__ import annotations

from collections.abc import Iterable

USER, SYSTEM = "[USR]", "[SYS]"
ROLES = (USER, SYSTEM)
"""Marks of the two speakers, each a token of its own."""


def dialogue(turns: Iterable[tuple[str, str]]) -> str:
    """One text of `turns`, each a mark of `ROLES` and what is said."""
    return " ".join(f"{role} {text}" for role, text in turns)
