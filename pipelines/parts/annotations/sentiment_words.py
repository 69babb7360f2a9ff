"""Part of speech and polarity of words (Ke et al. 2020, SentiLARE §3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.annotations import Annotation
from pipelines.shipped import own_or_shipped
from pipelines.task_families.tokenized import UNCOVERED, word_at
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

PART_OF_SPEECH, POLARITY = "part_of_speech", "polarity"
CLASSES = {"v": 1, "n": 2, "a": 3, "d": 4}
"""First letter of a tag of jieba → verb, noun, adjective, adverb, as in SentiWordNet."""
OTHER = 5
POLARITIES = {"negative": 2, "positive": 3}
"""Name of a polarity in the file → its value."""
NEUTRAL = 1


class SentimentWords(Annotation, name="sentiment_words"):
    """Two channels of Chinese words: their part of speech by jieba's tags, and their polarity by a lexicon.

    part_of_speech: 1 verb, 2 noun, 3 adjective, 4 adverb, 5 other. polarity: 1 neutral, 2 negative, 3 positive; a word
    that the lexicon does not list is neutral. In both, 0 is unknown: special tokens, and what a corruption hides. The
    paper draws polarities from SentiWordNet, by similarity of a text to the glosses of a word's senses.
    """

    paper = "arXiv:1911.02493"
    makes: ClassVar[str] = POLARITY

    file: Path = Path("recipes/knowledge/polarity_zh.tsv")
    """UTF-8 file of tab-separated lines of a word and `positive` or `negative`; lines that begin with `#` are comments.
    Relative to the current directory, or else to what is shipped."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (own_or_shipped(self.file),)

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (
            Channel(PART_OF_SPEECH, size=OTHER + 1, edges=(0, 0)),
            Channel(POLARITY, size=max(POLARITIES.values()) + 1, edges=(0, 0)),
        )

    def check_files(self) -> None:
        read_polarities(self.reads_files[0])

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        import rjieba

        if isinstance(text.text, str):
            tagged = list(rjieba.tag(text.text, True))
            word = word_at(text.spans, np.cumsum([len(one) for one, _ in tagged], dtype=np.int64))
        else:
            assert text.words is not None
            # a word that jieba divides is what its last part is: the head of a Chinese compound
            tagged = [(one, (rjieba.tag(one, True) or [("", "")])[-1][1]) for one in text.text]
            word = text.words
        known = read_polarities(self.reads_files[0])
        # the last entry is that of tokens in no word, whose index is −1
        assert UNCOVERED == -1
        classes = [CLASSES.get(tag[:1], OTHER) for _, tag in tagged] + [0]
        polarities = [known.get(one, NEUTRAL) for one, _ in tagged] + [0]
        values = {PART_OF_SPEECH: classes, POLARITY: polarities}
        return {name: np.asarray(value, dtype=np.int64)[word] for name, value in values.items()}


@lru_cache(maxsize=4)
def read_polarities(path: Path) -> dict[str, int]:
    """Word → value of its polarity. Raises DataError with the file, and the number of a malformed line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as a lexicon ({error})") from None
    known: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, _, polarity = (part.strip() for part in line.partition("\t"))
        if not word or polarity not in POLARITIES:
            raise DataError(
                f"{path}:{number}: expected a word, a tab, and {' or '.join(POLARITIES)}, got {line[:60]!r}"
            )
        if known.setdefault(word, POLARITIES[polarity]) != POLARITIES[polarity]:
            raise DataError(f"{path}:{number}: the word {word!r} has the other polarity in a line before")
    if not known:
        raise DataError(f"{path}: the lexicon is empty")
    return known
