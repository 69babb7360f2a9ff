"""The language of each text, by the script that it is written in."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from pipelines.components import did_you_mean
from pipelines.parts.annotations import Annotation
from pipelines.parts.annotations.languages import NAME
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

HAN = "han"
READ = 500
"""Characters of a text that are looked at."""


class LanguagesByScript(Annotation, name="languages_by_script"):
    """The language of a text, as an index into `order`, where each is written in a script of its own: for rows whose
    language no column names, such as a test set in another language than the training set.

    The script of most of the text's letters decides; a text without any of the scripts has the first language.
    """

    paper = "arXiv:1901.07291"
    makes = NAME

    order: tuple[str, ...] = Option(min_length=1)
    """The languages: a language is stored as its index here, as in the annotation `languages`."""
    scripts: dict[str, str] = Option(min_length=1)
    """Script → language. Scripts have the names of Unicode characters: latin, han, cyrillic, arabic, hiragana …"""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if len(set(self.order)) < len(self.order):
            raise ValueError(f"order: {', '.join(self.order)} names a language twice")
        for script, language in self.scripts.items():
            if language not in self.order:
                raise ValueError(f"scripts: {language!r} is not in order.{did_you_mean(language, self.order)}")
            if script not in (known := all_scripts()):
                raise ValueError(f"scripts: no letter is called {script!r}.{did_you_mean(script, known)}")
        return self

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (Channel(NAME, size=len(self.order)),)

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        characters = text.text if isinstance(text.text, str) else " ".join(text.text)
        counts = Counter(script_of(one) for one in characters[:READ])
        # max takes the first of equals, in the order of the recipe
        script = max(self.scripts, key=lambda one: counts[one])
        language = self.scripts[script] if counts[script] else self.order[0]
        return {NAME: np.full(len(text), self.order.index(language))}


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """Script of a letter, by the first word of its name; empty for what is no letter."""
    if not character.isalpha():
        return ""
    name = unicodedata.name(character, "")
    return HAN if name.startswith("CJK ") else name.partition(" ")[0].lower()


@lru_cache(maxsize=1)
def all_scripts() -> frozenset[str]:
    """Scripts of all letters of the first plane."""
    return frozenset(map(script_of, map(chr, range(0x10000)))) - {""}
