"""c4: the rules that made the Colossal Clean Crawled Corpus of Common Crawl."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from pipelines.corpora.cleaning import Filter, Judgement
from pipelines.corpora.cleaning.words import unknown_words, words_of
from pipelines.errors import DataError

_MARKS = {"zh": (".", "?", "!", '"', "。", "？", "！", "”", "」", "』")}
_USUAL_MARKS = (".", "?", "!", '"', "”")
_ELLIPSES = ("...", "…")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])|[。！？](?=[^。！？”’」』）\s])")
_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
_POLICY = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")


class C4(Filter, name="c4"):
    """Lines that are no sentences go; so do pages with too few sentences, placeholder text, code or bad words.

    Raffel et al. 2019, §2.2, but for two rules that are parts of their own: language (there langdetect, at least 0.99) and
    passages of three sentences that were seen before (deduplication). Beyond the paper: Chinese lines may end in 。？！”, words
    are jieba's there, and the ends of sentences are counted by their marks, without a model.
    """

    paper: ClassVar[str] = "arXiv:1910.10683"
    libraries: ClassVar[tuple[str, ...]] = ("rjieba",)

    terminal_marks: bool = True
    """Lines go that do not end in `.`, `!`, `?` or an end quote, or that end in an ellipsis."""
    min_words_per_line: int = Field(default=5, ge=0)
    """Lines with fewer words go: 5 in the paper's last version and its code, 3 in JMLR 21(140)."""
    max_word_length: int = Field(default=1000, ge=1)
    """Lines with a longer word go; from the paper's code."""
    min_sentences: int = Field(default=3, ge=0)
    """Pages with fewer sentences go: 3 in the paper's last version and its code, 5 in JMLR 21(140)."""
    javascript: bool = True
    """Lines go that hold the word Javascript."""
    policy: bool = True
    """Lines go that speak of terms of use, privacy or cookie policies, or the use of cookies."""
    citations: bool = True
    """Wikipedia's marks [1], [edit] and [citation needed] are taken out of lines."""
    lorem_ipsum: bool = True
    """Pages go that hold "lorem ipsum"."""
    curly_bracket: bool = True
    """Pages go that hold a `{`."""
    bad_words: str | None = None
    """A file of words or phrases, one a line; pages go that hold one of them on its own (in Chinese: anywhere)."""

    @property
    def files(self) -> tuple[str, ...]:
        """The list of bad words."""
        return (self.bad_words,) if self.bad_words else ()

    def problem(self, language: str) -> str | None:
        """Words must be known to be counted."""
        return unknown_words(language)

    def judging(self, language: str, root: Path) -> Callable[[str], Judgement]:
        """The judge of pages in a language. DataError when the list of bad words cannot be read or is empty."""
        bad = _bad_words(root / self.bad_words, language) if self.bad_words else None

        line_stays = self._line_judge(language)

        def judge(text: str) -> Judgement:
            if self.curly_bracket and "{" in text:
                return text, "curly bracket"
            lowered = text.lower()
            if self.lorem_ipsum and "lorem ipsum" in lowered:
                return text, "lorem ipsum"
            if bad is not None and bad.search(lowered):
                return text, "bad word"
            cited = _CITATION.sub("", text) if self.citations and "[" in text else text
            lines = [line for line in map(str.strip, cited.split("\n")) if line_stays(line)]
            if sum(1 + len(_SENTENCE_END.findall(line)) for line in lines) < self.min_sentences:
                return text, "too few sentences"
            return "\n".join(lines), None

        return judge

    def _line_judge(self, language: str) -> Callable[[str], bool]:
        marks, words = _MARKS.get(language, _USUAL_MARKS), words_of(language)
        phrases = (("javascript",) if self.javascript else ()) + (_POLICY if self.policy else ())

        def stays(line: str) -> bool:
            if not line or (self.terminal_marks and (not line.endswith(marks) or line.endswith(_ELLIPSES))):
                return False
            # jieba is not asked where there are fewer characters than words
            if len(line) < self.min_words_per_line or len(words(line)) < self.min_words_per_line:
                return False
            if len(line) > self.max_word_length and max(map(len, line.split())) > self.max_word_length:
                return False
            lowered = line.lower()
            return not any(phrase in lowered for phrase in phrases)

        return stays


def _bad_words(path: Path, language: str) -> re.Pattern[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: the list of bad words cannot be read: {error}; c4 takes a word a line, UTF-8"
        ) from None
    words = sorted({word for line in lines if (word := line.strip().lower())})
    if not words:
        raise DataError(f"{path}: the list of bad words is empty; c4 takes a word a line, UTF-8")
    either = "|".join(map(re.escape, words))
    return re.compile(either if language == "zh" else rf"(?<![^\W\d_])(?:{either})(?![^\W\d_])")
