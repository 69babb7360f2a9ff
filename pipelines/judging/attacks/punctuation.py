"""Punctuation: missing and superfluous marks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipelines.judging.attacks import Attack

if TYPE_CHECKING:
    from numpy.random import Generator

_MARK = re.compile(r"(?<=\w)[,.;:!?]+(?=\s|$)|[，。；：！？、]+")
_GAP = re.compile(r"(?<=\w) (?=\w)|(?<=[\u3400-\u9fff])(?=[\u3400-\u9fff])")


class Punctuation(Attack, name="punctuation"):
    """Marks at the ends of words are removed, and commas inserted between words, each with probability `rate`."""

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        fewer = _MARK.sub(lambda mark: "" if random.random() < rate else mark[0], text)

        def comma(gap: re.Match[str]) -> str:
            if random.random() >= rate:
                return gap[0]
            return f",{gap[0]}" if gap[0] else "，"

        return _GAP.sub(comma, fewer)
