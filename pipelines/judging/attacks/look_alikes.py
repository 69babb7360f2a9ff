"""Look-alikes: Chinese characters of nearly the same shape, a common error of handwriting and of character
recognition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pipelines.judging.attacks.characters import CHINESE, change_characters
from pipelines.judging.attacks.lexicon import LexiconAttack, read_lexicon

if TYPE_CHECKING:
    from numpy.random import Generator


class LookAlikes(LexiconAttack, name="look_alikes"):
    """A character is replaced by one of similar shape, from a table (the confusions by shape of Zhang et al. 2020,
    §3.1)."""

    paper = "arXiv:2005.07421"
    languages: ClassVar[frozenset[str] | None] = CHINESE
    shipped: ClassVar[Mapping[str, str]] = {"zh": "look_alikes_zh.tsv"}

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        known = read_lexicon(self.file(language))
        others = {position: known.get(character, ()) for position, character in enumerate(text)}
        return change_characters(text, rate, random, others)
