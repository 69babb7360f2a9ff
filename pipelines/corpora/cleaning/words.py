"""Words, as the filters count them: what stands between spaces, and in Chinese what jieba finds."""

from __future__ import annotations

from collections.abc import Callable

_UNKNOWN = frozenset({"ja", "th", "lo", "km", "my", "bo"})
"""Languages written without spaces between words, whose words nothing here can find."""


def words_of(language: str) -> Callable[[str], list[str]]:
    """The words of a text, in order. Marks are no words where jieba cuts; elsewhere they cling to words."""
    return _jieba if language == "zh" else str.split


def unknown_words(language: str) -> str | None:
    """Why the words of a language cannot be counted; None when they can."""
    return f"it counts words, and those of {language!r} cannot be found" if language in _UNKNOWN else None


def _jieba(text: str) -> list[str]:
    import rjieba

    return [word for word in rjieba.cut(text, True) if any(map(str.isalnum, word))]
