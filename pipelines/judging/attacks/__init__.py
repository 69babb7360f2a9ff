"""Attacks: small changes to an example that a reader would forgive, and under which its right answer stays right.

    attack.example(row, family, rate, random, language) ─▶ the row, attacked
      └── attack.change(text, rate, random, language)   ─▶ one text of it, a pure function of its arguments

Labels stay right by construction: what an answer quotes is left as it is and found again at its new place, columns that hold
an answer are never touched, and no text or word is emptied.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pipelines.components import Component

if TYPE_CHECKING:
    from numpy.random import Generator

    from pipelines.task_families import Row, TaskFamily

TEXTS = frozenset(
    {
        "text_classification",
        "pair_classification",
        "pair_regression",
        "span_pair_classification",
        "multiple_choice",
        "span_extraction",
        "tagging",
        "layout_tagging",
        "text_generation",
    }
)
"""Families whose texts may change a little without another answer becoming right. In the others a text is a key into a
table, or a sentence that differs from another by one word."""
Change: TypeAlias = Callable[[str], str]


class Attack(Component):
    """A way of changing examples."""

    languages: ClassVar[frozenset[str] | None] = None
    """ISO 639 codes of the languages it is for; None for every one."""
    families: ClassVar[frozenset[str]] = TEXTS
    """Names of the task families under whose answers it is safe."""

    @abstractmethod
    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        """`text` with a share `rate` of its words (of its characters, in scripts without spaces) changed.

        Each word is drawn by itself, so that a short text may stay as it is.
        """

    def example(self, row: Row, family: TaskFamily, rate: float, random: Generator, language: str) -> dict[str, Any]:
        """`row` with every text that is no answer attacked."""
        return attacked(row, family, lambda text: self.change(text, rate, random, language))

    def unfit(self, family: str | None, language: str | None) -> str | None:
        """Why it cannot attack examples of `family` in `language`; None when it can, or when these are not known."""
        if family is not None and family not in self.families:
            return f"{self.name} would change what the right answer is in {family}; it is for {_listed(self.families)}"
        if language is not None and self.languages is not None and language not in self.languages:
            return f"{self.name} is for {_listed(self.languages)}, and this dataset's language is {language}"
        return None


def attacked(row: Row, family: TaskFamily, change: Change) -> dict[str, Any]:
    """`row` with `change` done to its texts, called once for each in the order of the columns.

    Columns of answers that are text or tags stay; what other columns quote by its place stays, and its place is moved.
    """
    quoted = family.quoted_spans(row)
    done: dict[str, str] = {}
    for column, spans in quoted.items():
        text, before, made = str(row[column]), 0, ""
        for begin, end in _apart(spans):
            made += _kept(change, text[before:begin])
            for first, behind in spans:
                if begin <= first < end:
                    done[text[first:behind]] = text[first:behind]
                    # what stands before a quotation, by whose length a family finds its new place
                    done[text[:first]] = made + text[begin:first]
            made += text[begin:end]
            before = end
        done[text] = made + _kept(change, text[before:])
    result = family.repair_texts(row, lambda text: done[text] if text in done else _kept(change, text))
    result |= {name: row[name] for name in family.target if "string" in family.columns[name]}
    if quoted and family.problem(result) is not None:
        # a quotation that is at once the beginning of its text: which of both is meant cannot be told
        return dict(row)
    return {**row, **result} | ({"text": family.text(result)} if "text" in row else {})


def _apart(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """`spans` in order, those that touch or overlap as one."""
    whole: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if whole and begin <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((begin, end))
    return whole


def _kept(change: Change, text: str) -> str:
    """`text` changed, with the spaces at its ends; as it is where it has no word or would lose all of them."""
    inner = text.strip()
    made = change(inner).strip() if inner else ""
    first = text.find(inner)
    return text[:first] + made + text[first + len(inner) :] if made else text


def _listed(words: frozenset[str]) -> str:
    return ", ".join(sorted(words))
