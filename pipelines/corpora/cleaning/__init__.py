"""Cleaners: what is repaired in a text, what a text must be to stay, and what in it is hidden.

    text ─▶ repairs ─▶ filters ─▶ masks ─▶ a text, or the rule that it breaks

    Cleaner.model_validate({"name": "gopher", "min_words": 20}).judging("en", root)("Too short.")
    # ("Too short.", "words")

A cleaner is a value that params.yaml spells under `clean:`. What it needs at work (tables, a model) is made by one call for a
language and then serves every text of a process.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Self, TypeAlias

from pydantic import model_validator

from pipelines.components import Component

Judgement: TypeAlias = tuple[str, str | None]
"""What stays of a text, and the rule for which it must go (None: it stays)."""


class Cleaner(Component):
    """One thing that is done to every text: a repair, a filter or a mask."""

    libraries: ClassVar[tuple[str, ...]] = ()
    """Distributions whose version shapes what it does; a new version cleans anew."""

    @property
    def files(self) -> tuple[str, ...]:
        """The user's files that it reads; a change in one cleans anew."""
        return ()

    def problem(self, language: str) -> str | None:
        """Why it cannot clean texts in a language (ISO 639); None when it can."""
        return None


class Repair(Cleaner):
    """Text to text: what reading, encoding or the web left in it is put right. Doing it twice is doing it once."""

    of_documents: ClassVar[bool] = False
    """Whether it takes away lines of a document: examples with an answer are then left as they are."""

    @abstractmethod
    def repairing(self, language: str) -> Callable[[str], str]:
        """The repair of texts in a language."""


class Filter(Cleaner):
    """Text to a judgement: it stays, some of its lines stay, or it goes and the rule it breaks is counted."""

    @abstractmethod
    def judging(self, language: str, root: Path) -> Callable[[str], Judgement]:
        """The judge of texts in a language; files are relative to `root`. DataError when a file cannot be read."""


class Mask(Cleaner):
    """Text to text: what identifies a person gives way to a placeholder, and is counted."""

    placeholder: str
    """What stands in its place."""

    @abstractmethod
    def masking(self) -> Callable[[str], tuple[str, int]]:
        """A text → the text with everything it finds replaced, and how often it found something."""

    @model_validator(mode="after")
    def _placeholder_is_no_find(self) -> Self:
        # without these it is part of no find, and masking comes to an end
        if not self.placeholder or re.search(r"[0-9@:\s]", self.placeholder):
            raise ValueError(
                f"placeholder: {self.placeholder!r}: write some letters without digits, '@', ':' and space"
            )
        return self


def mask_with(
    pattern: re.Pattern[str], placeholder: str, holds: Callable[[re.Match[str]], bool] = lambda found: True
) -> Callable[[str], tuple[str, int]]:
    """A mask of everything that `pattern` finds and `holds` confirms, until there is no more of it.

    What stands beside a find may be found only when the find is gone.
    """

    def mask(text: str) -> tuple[str, int]:
        total = 0
        while True:
            count = 0

            def replace(found: re.Match[str]) -> str:
                nonlocal count
                if not holds(found):
                    return found[0]
                count += 1
                return placeholder

            text = pattern.sub(replace, text)
            if not count:
                return text, total
            total += count

    return mask
