"""Changes of single Han characters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.random import Generator

CHINESE = frozenset({"zh"})
_HAN = re.compile("[\u3400-\u9fff]")


def change_characters(text: str, rate: float, random: Generator, others: Mapping[int, Sequence[str]]) -> str:
    """`text` with each Han character replaced with probability `rate` by one of `others`, which maps positions to
    alternatives."""

    def one(match: re.Match[str]) -> str:
        drawn = random.random() < rate
        known = others.get(match.start(), ()) if drawn else ()
        return known[int(random.integers(len(known)))] if known else match[0]

    return _HAN.sub(one, text)
