"""Cleaners: repairs, filters and masks of texts.

    text ─▶ repairs ─▶ filters ─▶ masks ─▶ a text, or the rule for which it was dropped

    Cleaner.model_validate({"name": "gopher", "min_words": 20}).make_filter("en", root)("Too short.")
    # ("Too short.", "words")

A cleaner is a component under `clean:` in params.yaml. Its `make_…` method loads what it needs (tables, a model) once
per language and process, and returns a function over texts.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Self, TypeAlias

from pydantic import model_validator

from pipelines.components import Component

FilterResult: TypeAlias = tuple[str, str | None]
"""The text that is kept, and the rule for which it is dropped instead (None: it is kept)."""


class Cleaner(Component):
    """One operation on every text: a repair, a filter or a mask."""

    libraries: ClassVar[tuple[str, ...]] = ()
    """Distributions whose version affects the result; a new version invalidates cleaned texts."""

    @property
    def files(self) -> tuple[str, ...]:
        """User files that it reads; a change in one invalidates cleaned texts."""
        return ()

    def problem(self, language: str) -> str | None:
        """Why a language (ISO 639) is not supported; None when it is."""
        return None


class Repair(Cleaner):
    """Text to text: remove artefacts of reading, encoding or the web. Repairs are idempotent."""

    of_documents: ClassVar[bool] = False
    """Whether it removes lines of a document; such a repair does not apply to labelled examples."""

    @abstractmethod
    def make_repair(self, language: str) -> Callable[[str], str]:
        """A function that repairs texts of a language."""


class Filter(Cleaner):
    """Text to a result: keep it, keep some of its lines, or drop it and count the rule that it broke."""

    @abstractmethod
    def make_filter(self, language: str, root: Path) -> Callable[[str], FilterResult]:
        """A function that filters texts of a language; files are relative to `root`. DataError for an unreadable
        file."""


class Mask(Cleaner):
    """Text to text: replace what identifies a person by a placeholder, and count the replacements."""

    placeholder: str
    """Text that replaces each match."""

    @abstractmethod
    def make_mask(self) -> Callable[[str], tuple[str, int]]:
        """A function: text → text with every match replaced, and the number of matches."""

    @model_validator(mode="after")
    def _placeholder_cannot_match(self) -> Self:
        # without these characters no match contains a placeholder, so that repeated masking terminates
        if not self.placeholder or re.search(r"[0-9@:\s]", self.placeholder):
            raise ValueError(f"placeholder: {self.placeholder!r}: use letters without digits, '@', ':' and spaces")
        return self


def mask_matches(
    pattern: re.Pattern[str], placeholder: str, is_valid: Callable[[re.Match[str]], bool] = lambda match: True
) -> Callable[[str], tuple[str, int]]:
    """A mask that replaces all matches of `pattern` that are valid, until there are none left.

    It is applied repeatedly because a match may become possible only when its neighbour is replaced.
    """

    def mask(text: str) -> tuple[str, int]:
        total = 0
        while True:
            count = 0

            def replace(match: re.Match[str]) -> str:
                nonlocal count
                if not is_valid(match):
                    return match[0]
                count += 1
                return placeholder

            text = pattern.sub(replace, text)
            if not count:
                return text, total
            total += count

    return mask
