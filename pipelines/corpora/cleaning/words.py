"""Word segmentation for the filters: at spaces, and by jieba in Chinese."""

from __future__ import annotations

from collections.abc import Callable

_NOT_SEGMENTED = frozenset({"ja", "th", "lo", "km", "my", "bo"})
"""Languages without spaces between words for which no segmenter is available."""


def words_of(language: str) -> Callable[[str], list[str]]:
    """A function: text → words in order. jieba separates punctuation, which is dropped; elsewhere it stays attached."""
    return _jieba if language == "zh" else str.split


def why_not_countable(language: str) -> str | None:
    """Why the words of a language cannot be counted; None when they can."""
    return f"it counts words, and text in {language!r} cannot be segmented" if language in _NOT_SEGMENTED else None


def _jieba(text: str) -> list[str]:
    import rjieba

    return [word for word in rjieba.cut(text, True) if any(map(str.isalnum, word))]
