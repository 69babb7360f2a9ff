"""Homophones: Chinese characters that sound alike, the commonest slip of who types by sound."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.characters import CHINESE, change_characters

if TYPE_CHECKING:
    from numpy.random import Generator
    from pypinyin import Style


class Homophones(Attack, name="homophones"):
    """A character becomes a common one of the same sound and tone, read as it is in its phrase (as Zhang et al. 2020, §3.1)."""

    paper = "arXiv:2005.07421"
    languages: ClassVar[frozenset[str] | None] = CHINESE

    tones: bool = True
    """Whether the tone must be the same too."""

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        from pypinyin import lazy_pinyin

        of_sound = _common(self.tones)
        # what is no Han character sounds like itself, one for each, so that places stay right
        sounds = lazy_pinyin(text, style=_style(self.tones), errors=lambda run: [*run])  # type: ignore[arg-type, return-value]
        others = {
            place: [one for one in of_sound.get(sound, ()) if one != character]
            for place, (character, sound) in enumerate(zip(text, sounds, strict=True))
        }
        return change_characters(text, rate, random, others)


@cache
def _common(tones: bool) -> dict[str, tuple[str, ...]]:
    """Sound → the characters of it among the 3,755 of GB 2312's first level, each under its usual reading."""
    from pypinyin import lazy_pinyin

    every = "".join(
        bytes((high, low)).decode("gb2312")
        for high in range(0xB0, 0xD8)
        for low in range(0xA1, 0xFF)
        if (high, low) < (0xD7, 0xFA)
    )
    found: dict[str, tuple[str, ...]] = {}
    for character in every:
        (sound,) = lazy_pinyin(character, style=_style(tones))
        found[sound] = (*found.get(sound, ()), character)
    return found


def _style(tones: bool) -> Style:
    from pypinyin import Style

    return Style.TONE3 if tones else Style.NORMAL
