"""Mistakes in a recipe, each refused in one sentence when the recipe is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from pipelines.errors import RecipeError
from pipelines.recipe.problems import Setting
from tests.steps import library_of


class Mistake(NamedTuple):
    """A change to a good recipe, and what the one message must say."""

    old: str
    new: str
    says: tuple[str, ...]

    def made_in(self, recipe: str) -> str:
        """`recipe` with this mistake."""
        assert self.old in recipe
        return recipe.replace(self.old, self.new, 1)


def refusal(
    folder: Path,
    name: str,
    recipe: str,
    setting: Setting | None = None,
    variants: Sequence[str] = (),
    **others: str,
) -> str:
    """The one sentence with which `recipe` is refused, in a library with `others`; it names the file."""
    library = library_of(folder, **{name: recipe}, **others)
    with pytest.raises(RecipeError) as raised:
        library.load(name, variants, setting=setting)
    message = str(raised.value)
    assert "\n" not in message and f"{name}.yaml" in message, message
    return message


def check_refusal(message: str, says: Sequence[str]) -> None:
    """Check that every part of what is to be said is in `message`."""
    for part in says:
        assert part in message, f"{part!r} is not in: {message}"
