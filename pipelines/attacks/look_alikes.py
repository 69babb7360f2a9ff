"""Look-alikes: Chinese characters of nearly the same shape, the slip of hands and of optical readers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.attacks import Attack, reads
from pipelines.attacks.characters import CHINESE, change_characters
from pipelines.attacks.lexicon import read_lexicon

if TYPE_CHECKING:
    from numpy.random import Generator

SHIPPED = "look_alikes_zh.tsv"


class LookAlikes(Attack, name="look_alikes"):
    """A character becomes one that looks like it, from a table of such (the confusions by shape of Zhang et al. 2020, §3.1)."""

    paper = "arXiv:2005.07421"
    languages: ClassVar[frozenset[str] | None] = CHINESE

    lexicon: str | None = None
    """A file of character, tab, those that look like it with tabs between; None for the short one that comes along."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (reads(self.lexicon, SHIPPED),)

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        known = read_lexicon(*self.reads_files)
        return change_characters(text, rate, random, {place: known.get(one, ()) for place, one in enumerate(text)})
