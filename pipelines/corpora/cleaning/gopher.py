"""gopher: the quality rules of MassiveText, which separate prose from other text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from pipelines.corpora.cleaning import Filter, FilterResult
from pipelines.corpora.cleaning.words import why_not_countable, words_of

_LETTER = re.compile(r"[^\W\d_]")
_BULLETS = ("•", "-", "*", "·", "●", "▪", "◦", "‣", "–")
_ELLIPSES = ("...", "…")
_STOP_WORDS = {
    "en": frozenset({"the", "be", "to", "of", "and", "that", "have", "with"}),
    "zh": frozenset({*"的年在月是和日了於为為有被人中他與与後后也而由"}),
}
_MEAN_WORD_LENGTH = {"zh": (1.0, 5.0)}
_ALPHABETIC = {"zh": 0.735}


class Gopher(Filter, name="gopher"):
    """Drop texts that are too short or long, have too short or long words, or are lists, symbols or truncated lines.

    Rae et al. 2021, §A.1.1, quality filtering. Words are separated by spaces; in Chinese they are segmented by jieba,
    and the thresholds and stop words are those of FineWeb2 (Penedo et al. 2025, arXiv:2506.20920, configuration
    cmn_Hani).
    """

    paper: ClassVar[str] = "arXiv:2112.11446"
    libraries: ClassVar[tuple[str, ...]] = ("rjieba",)

    min_words: int = Field(default=50, ge=0)
    """Drop texts with fewer words."""
    max_words: int = Field(default=100_000, ge=1)
    """Drop texts with more words."""
    min_mean_word_length: float | None = Field(default=None, ge=0)
    """Characters; null: 3, in Chinese 1."""
    max_mean_word_length: float | None = Field(default=None, ge=0)
    """Characters; null: 10, in Chinese 5."""
    max_symbols: float = Field(default=0.1, ge=0)
    """Maximum number signs per word, and ellipses per word."""
    max_bullet_lines: float = Field(default=0.9, ge=0, le=1)
    """Maximum share of lines that begin with a bullet."""
    max_ellipsis_lines: float = Field(default=0.3, ge=0, le=1)
    """Maximum share of lines that end in an ellipsis."""
    min_alphabetic: float | None = Field(default=None, ge=0, le=1)
    """Minimum share of words that contain a letter; null: 0.8, in Chinese 0.735."""
    min_stop_words: int = Field(default=2, ge=0)
    """Minimum number of different stop words."""
    stop_words: tuple[str, ...] | None = None
    """In lower case; null: those of the language, known for English and Chinese; in other languages the rule is then
    skipped."""

    def problem(self, language: str) -> str | None:
        """Words can be counted only where they can be segmented."""
        return why_not_countable(language)

    def make_filter(self, language: str, root: Path) -> Callable[[str], FilterResult]:
        """A function that filters texts of a language."""
        words_in = words_of(language)
        default_min, default_max = _MEAN_WORD_LENGTH.get(language, (3.0, 10.0))
        shortest = default_min if self.min_mean_word_length is None else self.min_mean_word_length
        longest = default_max if self.max_mean_word_length is None else self.max_mean_word_length
        alphabetic = _ALPHABETIC.get(language, 0.8) if self.min_alphabetic is None else self.min_alphabetic
        stop_words = _STOP_WORDS.get(language) if self.stop_words is None else frozenset(self.stop_words)

        def broken_rule(text: str) -> str | None:
            words = words_in(text)
            count = len(words)
            if count < self.min_words:
                return "too few words"
            if count > self.max_words:
                return "too many words"
            if count and not shortest <= sum(map(len, words)) / count <= longest:
                return "mean word length"
            if text.count("#") > self.max_symbols * count:
                return "number signs"
            if _ellipses(text) > self.max_symbols * count:
                return "ellipses"
            lines = [line for line in map(str.strip, text.split("\n")) if line]
            if sum(map(_begins_with_bullet, lines)) > self.max_bullet_lines * len(lines):
                return "bullet lines"
            if sum(map(_ends_in_ellipsis, lines)) > self.max_ellipsis_lines * len(lines):
                return "lines ending in an ellipsis"
            if sum(1 for word in words if word.isalpha() or _LETTER.search(word)) < alphabetic * count:
                return "words without a letter"
            if stop_words is not None and _too_few(stop_words, words, self.min_stop_words):
                return "stop words"
            return None

        return lambda text: (text, broken_rule(text))


def _ellipses(text: str) -> int:
    # six dots, or two ellipsis signs, are one ellipsis in Chinese
    return text.count("...") - text.count("......") + text.count("…") - text.count("……")


def _begins_with_bullet(line: str) -> bool:
    return line.startswith(_BULLETS)


def _ends_in_ellipsis(line: str) -> bool:
    return line.endswith(_ELLIPSES)


def _too_few(stop_words: frozenset[str], words: list[str], least: int) -> bool:
    return len(stop_words.intersection(words)) < least and len(stop_words.intersection(map(str.lower, words))) < least
