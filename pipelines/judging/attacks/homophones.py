"""Homophones: Chinese characters with the same sound, the most common error of phonetic input methods."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.characters import CHINESE, change_characters

if TYPE_CHECKING:
    from numpy.random import Generator
    from pypinyin import Style


class Homophones(Attack, name="homophones"):
    """A character is replaced by a common one with the same sound and tone in its phrase (as Zhang et al.
    2020, §3.1)."""

    paper = "arXiv:2005.07421"
    languages: ClassVar[frozenset[str] | None] = CHINESE

    tones: bool = True
    """Whether the tone must be the same too."""

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        from pypinyin import lazy_pinyin

        of_sound = _common(self.tones)
        # other characters are their own sound, one each, so that positions stay aligned
        style = _style(self.tones)
        sounds = lazy_pinyin(text, style=style, errors=lambda run: [*run])  # type: ignore[arg-type, return-value]
        others = {
            position: [one for one in of_sound.get(sound, ()) if one != character]
            for position, (character, sound) in enumerate(zip(text, sounds, strict=True))
        }
        return change_characters(text, rate, random, others)


@cache
def _common(tones: bool) -> dict[str, tuple[str, ...]]:
    """Sound → its characters among the 3,755 of GB 2312's first level, each by its most common reading."""
    from pypinyin import lazy_pinyin

    every = "".join(
        bytes((high, low)).decode("gb2312")
        for high in range(0xB0, 0xD8)
        for low in range(0xA1, 0xFF)
        if (high, low) < (0xD7, 0xFA)
    )
    by_sound: dict[str, tuple[str, ...]] = {}
    for character in every:
        (sound,) = lazy_pinyin(character, style=_style(tones))
        by_sound[sound] = (*by_sound.get(sound, ()), character)
    return by_sound


def _style(tones: bool) -> Style:
    from pypinyin import Style

    return Style.TONE3 if tones else Style.NORMAL
