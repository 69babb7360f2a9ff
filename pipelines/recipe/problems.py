"""Wording of refusals: which members of a family would fit, and lists as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pipelines.components import Component, discover

Problem: TypeAlias = tuple[str, str]
"""Key that is wrong, and a sentence with the reason and what would fit."""


def matching_members(family: type[Component], fits: Callable[..., bool]) -> list[str]:
    """Sorted names of the members of a family for which `fits` is true."""
    discover(family.__module__)
    return [name for name, member in sorted(family.members.items()) if fits(member)]


def listed(values: Iterable[object]) -> str:
    """Format values as `a, b, c`, sorted; `none` when there are none."""
    return ", ".join(sorted(str(value) for value in values)) or "none"


@dataclass(frozen=True)
class Setting:
    """The dataset that a recipe is checked against; checks that need a field which is None (unknown) are skipped."""

    family: str | None = None
    """Name of the dataset's task family."""
    language: str | None = None
    """ISO 639 code."""
    corpora: Mapping[str, Mapping[str, str]] | None = field(default=None, hash=False)
    """Its further corpora, and the types of their columns besides `text`."""
    tasks: Mapping[str, str] | None = field(default=None, hash=False)
    """Its named tasks, and the name of the family of each."""
