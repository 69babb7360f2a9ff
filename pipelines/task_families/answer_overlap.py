"""How much of a right answer a given one says: the counting of SQuAD's and of CMRC 2018's evaluation scripts.

SQuAD (Rajpurkar et al. 2018, arXiv:1806.03822): without case, punctuation and articles; F1 over the words both hold.
CMRC 2018 (Cui et al. 2019, arXiv:1810.07366), where either answer holds Han characters: without case and punctuation; F1 over the
longest run of units that both hold, a unit being a Han character or a word of other scripts as NLTK finds it. That script
also splits sentences before it asks for words, for which NLTK fetches a model: an answer is taken for one sentence here.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

from pipelines.task_families.writing_systems import has_han

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CHINESE_PUNCTUATION = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_HAN = re.compile("([\u4e00-\u9fa5])")


def exact(right: str, given: str) -> float:
    """1 where the two are the same once normalised, else 0."""
    if _is_chinese(right, given):
        return float(_plain_chinese(right) == _plain_chinese(given))
    return float(_words(right) == _words(given))


def overlap(right: str, given: str) -> float:
    """F1 of `given` against `right`, 0 to 1. Where either says nothing, 1 if both do."""
    if _is_chinese(right, given):
        wanted, said = (_units(_plain_chinese(text)) for text in (right, given))
        shared = _longest_run(wanted, said)
    else:
        wanted, said = _words(right), _words(given)
        if not wanted or not said:
            return float(wanted == said)
        shared = (Counter(wanted) & Counter(said)).total()
    return 2 * shared / (len(wanted) + len(said)) if shared else 0.0


def _is_chinese(right: str, given: str) -> bool:
    return has_han(right) or (bool(right) and has_han(given))


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _plain_chinese(text: str) -> str:
    return text.lower().strip().translate(_CHINESE_PUNCTUATION)


def _units(text: str) -> list[str]:
    """The Han characters of `text`, and the words of what stands between them."""
    units: list[str] = []
    for piece in _HAN.split(text):
        units += [piece] if _HAN.fullmatch(piece) else _other_words(piece)
    return units


def _other_words(text: str) -> list[str]:
    if not text.strip():
        return []
    if text.isdecimal():
        return [text]
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return list(NLTKWordTokenizer().tokenize(text))


def _longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest run of units that stands in both."""
    longest, before = 0, [0] * (len(second) + 1)
    for one in first:
        row = [0] * (len(second) + 1)
        for number, other in enumerate(second):
            if one == other:
                row[number + 1] = before[number] + 1
        longest, before = max(longest, *row), row
    return longest
