"""What a refusal says would do instead: the members of a family that fit, and lists as words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from pipelines.components import Component, discover

Problem: TypeAlias = tuple[str, str]
"""The key that is wrong, and a sentence that says why and what would fit."""


def matching_members(family: type[Component], fits: Callable[..., bool]) -> list[str]:
    """The names of the members of a family for which `fits` holds, sorted."""
    discover(family.__module__)
    return [name for name, member in sorted(family.members.items()) if fits(member)]


def listed(values: Iterable[object]) -> str:
    """`a, b, c`, sorted; `none` where there is nothing."""
    return ", ".join(sorted(str(value) for value in values)) or "none"
