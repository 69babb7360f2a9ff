"""Words of the same class: what may stand where a word stands (Tang et al. 2019, §3.3, POS-guided word replacement)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipelines.judging.attacks.letters import ALPHABETIC, change_words, like
from pipelines.judging.attacks.word_tables import WordTableAttack, open_table

if TYPE_CHECKING:
    from numpy.random import Generator


class ClassWords(WordTableAttack, name="class_words"):
    """A word is replaced by one of its class, drawn in proportion to how often each occurs; it may be itself.

    The classes are those of another stage, `from: <stage>`: words that have one vector there, as `brown_clusters` gives
    them. In the paper they are parts of speech, by a tagger. Words that the stage does not know stay. Of two changes,
    of which `masked_words` is one, this one comes first: a mask is no word. The answer may become another: in
    training, a teacher says what is right.
    """

    paper = "arXiv:1903.12136"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC
    families: ClassVar[frozenset[str]] = frozenset({"text_classification", "pair_classification"})

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        table = open_table(self.model)

        def replaced(word: str) -> str | None:
            other = table.of_its_class(word.lower(), random.random())
            return like(word, other) if other is not None else None

        return change_words(text, rate, random, replaced)
