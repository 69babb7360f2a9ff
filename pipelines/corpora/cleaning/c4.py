"""c4: the rules by which the Colossal Clean Crawled Corpus was made from Common Crawl."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from pipelines.corpora.cleaning import Filter, FilterResult
from pipelines.corpora.cleaning.words import why_not_countable, words_of
from pipelines.errors import DataError

_MARKS = {"zh": (".", "?", "!", '"', "。", "？", "！", "”", "」", "』")}
_DEFAULT_MARKS = (".", "?", "!", '"', "”")
_ELLIPSES = ("...", "…")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])|[。！？](?=[^。！？”’」』）\s])")
_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
_POLICY = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")


class C4(Filter, name="c4"):
    """Drop lines that are not sentences, and pages with too few sentences, placeholder text, code or bad words.

    Raffel et al. 2019, §2.2, except for two rules that are components of their own here: language (there langdetect, at
    least 0.99) and repeated passages of three sentences (deduplication). Beyond the paper: Chinese lines may end in
    。？！”, Chinese words are segmented by jieba, and sentence ends are counted by punctuation, without a model.
    """

    paper: ClassVar[str] = "arXiv:1910.10683"
    libraries: ClassVar[tuple[str, ...]] = ("rjieba",)

    terminal_marks: bool = True
    """Drop lines that do not end in `.`, `!`, `?` or a closing quote, or that end in an ellipsis."""
    min_words_per_line: int = Field(default=5, ge=0)
    """Drop lines with fewer words: 5 in the paper's last version and its code, 3 in JMLR 21(140)."""
    max_word_length: int = Field(default=1000, ge=1)
    """Drop lines with a longer word; from the paper's code."""
    min_sentences: int = Field(default=3, ge=0)
    """Drop pages with fewer sentences: 3 in the paper's last version and its code, 5 in JMLR 21(140)."""
    javascript: bool = True
    """Drop lines that contain the word Javascript."""
    policy: bool = True
    """Drop lines about terms of use, privacy or cookie policies, or the use of cookies."""
    citations: bool = True
    """Remove Wikipedia's marks [1], [edit] and [citation needed] from lines."""
    lorem_ipsum: bool = True
    """Drop pages that contain "lorem ipsum"."""
    curly_bracket: bool = True
    """Drop pages that contain a `{`."""
    bad_words: str | None = None
    """File of words or phrases, one per line; pages that contain one as a whole word (in Chinese: anywhere) are
    dropped."""

    @property
    def files(self) -> tuple[str, ...]:
        """The list of bad words."""
        return (self.bad_words,) if self.bad_words else ()

    def problem(self, language: str) -> str | None:
        """Words can be counted only where they can be segmented."""
        return why_not_countable(language)

    def make_filter(self, language: str, root: Path) -> Callable[[str], FilterResult]:
        """A function that filters pages of a language. DataError when the list of bad words is unreadable or empty."""
        bad = _bad_words(root / self.bad_words, language) if self.bad_words else None

        keeps_line = self._line_filter(language)

        def judge(text: str) -> FilterResult:
            if self.curly_bracket and "{" in text:
                return text, "curly bracket"
            lowered = text.lower()
            if self.lorem_ipsum and "lorem ipsum" in lowered:
                return text, "lorem ipsum"
            if bad is not None and bad.search(lowered):
                return text, "bad word"
            cited = _CITATION.sub("", text) if self.citations and "[" in text else text
            lines = [line for line in map(str.strip, cited.split("\n")) if keeps_line(line)]
            if sum(1 + len(_SENTENCE_END.findall(line)) for line in lines) < self.min_sentences:
                return text, "too few sentences"
            return "\n".join(lines), None

        return judge

    def _line_filter(self, language: str) -> Callable[[str], bool]:
        marks, words = _MARKS.get(language, _DEFAULT_MARKS), words_of(language)
        phrases = (("javascript",) if self.javascript else ()) + (_POLICY if self.policy else ())

        def keeps(line: str) -> bool:
            if not line or (self.terminal_marks and (not line.endswith(marks) or line.endswith(_ELLIPSES))):
                return False
            # fewer characters than words: no need to segment
            if len(line) < self.min_words_per_line or len(words(line)) < self.min_words_per_line:
                return False
            if len(line) > self.max_word_length and max(map(len, line.split())) > self.max_word_length:
                return False
            lowered = line.lower()
            return not any(phrase in lowered for phrase in phrases)

        return keeps


def _bad_words(path: Path, language: str) -> re.Pattern[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: the list of bad words cannot be read: {error}; c4 expects one word per line, UTF-8"
        ) from None
    words = sorted({word for line in lines if (word := line.strip().lower())})
    if not words:
        raise DataError(f"{path}: the list of bad words is empty; c4 expects one word per line, UTF-8")
    alternatives = "|".join(map(re.escape, words))
    return re.compile(alternatives if language == "zh" else rf"(?<![^\W\d_])(?:{alternatives})(?![^\W\d_])")
