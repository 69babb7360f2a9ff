"""Overlap of a given answer with the correct one, as in the evaluation scripts of SQuAD and CMRC 2018.

SQuAD (Rajpurkar et al. 2018, arXiv:1806.03822): without case, punctuation and articles; F1 over shared words. CMRC 2018
(Cui et al. 2019, arXiv:1810.07366), where either answer contains Han characters: without case and punctuation; F1 over
the longest common run of units, a unit being a Han character or, in other scripts, a word of NLTK's tokenizer. That
script also splits sentences first, for which NLTK downloads a model: here an answer is treated as one sentence.
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


def exact_match_score(right: str, given: str) -> float:
    """1 if both are equal after normalisation, else 0."""
    if _is_chinese(right, given):
        return float(_plain_chinese(right) == _plain_chinese(given))
    return float(_words(right) == _words(given))


def f1_score(right: str, given: str) -> float:
    """F1 of `given` against `right`, 0 to 1. If either is empty, 1 if both are, else 0."""
    if _is_chinese(right, given):
        expected, answered = (_units(_plain_chinese(text)) for text in (right, given))
        shared = _longest_run(expected, answered)
    else:
        expected, answered = _words(right), _words(given)
        if not expected or not answered:
            return float(expected == answered)
        shared = (Counter(expected) & Counter(answered)).total()
    return 2 * shared / (len(expected) + len(answered)) if shared else 0.0


def _is_chinese(right: str, given: str) -> bool:
    return has_han(right) or (bool(right) and has_han(given))


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _plain_chinese(text: str) -> str:
    return text.lower().strip().translate(_CHINESE_PUNCTUATION)


def _units(text: str) -> list[str]:
    """The Han characters of `text`, and the words between them."""
    units: list[str] = []
    for part in _HAN.split(text):
        units += [part] if _HAN.fullmatch(part) else _other_words(part)
    return units


def _other_words(text: str) -> list[str]:
    if not text.strip():
        return []
    if text.isdecimal():
        return [text]
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return list(NLTKWordTokenizer().tokenize(text))


def _longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common run of units."""
    longest, before = 0, [0] * (len(second) + 1)
    for unit in first:
        row = [0] * (len(second) + 1)
        for index, other in enumerate(second):
            if unit == other:
                row[index + 1] = before[index] + 1
        longest, before = max(longest, *row), row
    return longest
