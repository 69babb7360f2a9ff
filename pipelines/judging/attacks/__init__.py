"""Attacks: small changes of an example that a reader would forgive and that leave its right answer right.

    attack.example(row, family, rate, random, language) ─▶ the attacked row
      └── attack.change(text, rate, random, language)   ─▶ one of its texts, a pure function of the arguments

Labels stay right by construction: spans that an answer quotes are left unchanged and relocated, columns that hold an
answer are never modified, and no text or word becomes empty.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from pydantic import ConfigDict, PrivateAttr
from pydantic import Field as Option

from pipelines.components import Component

if TYPE_CHECKING:
    from numpy.random import Generator

    from pipelines.task_families import Row, TaskFamily

TEXTS = frozenset(
    {
        "text_classification",
        "label_sets",
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
"""Task families whose texts may change slightly without another answer becoming right. In the others a text is a key
into a table, or a sentence that differs from another by one word."""
Change: TypeAlias = Callable[[str], str]


class Attack(Component):
    """A way of changing examples."""

    languages: ClassVar[frozenset[str] | None] = None
    """ISO 639 codes of the languages that it supports; None for all."""
    reads_model: ClassVar[bool] = False
    """Whether it reads the network of another stage, as a `ModelAttack` does."""
    judges: ClassVar[bool] = True
    """Whether it can change the examples of a test: it needs nothing of the stage whose training it augments."""
    families: ClassVar[frozenset[str]] = TEXTS
    """Names of the task families whose answers it leaves right."""

    @abstractmethod
    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        """`text` with a share `rate` of its words (of its characters, in scripts without spaces) changed.

        Each word is drawn independently, so a short text may stay as it is.
        """

    def example(self, row: Row, family: TaskFamily, rate: float, random: Generator, language: str) -> dict[str, Any]:
        """`row` with every text that is not an answer attacked."""
        return attacked(row, family, lambda text: self.change(text, rate, random, language))

    def unfit(self, family: str | None, language: str | None) -> str | None:
        """Why it cannot attack examples of `family` in `language`; None if it can, or if these are not known."""
        if family is not None and family not in self.families:
            return f"{self.name} could change the right answer in {family}; it is for {_listed(self.families)}"
        if language is not None and self.languages is not None and language not in self.languages:
            return f"{self.name} is for {_listed(self.languages)}, and this dataset's language is {language}"
        return None


class ModelAttack(Attack):
    """An attack that reads the network of another stage: `from: <stage>`, a parent of the step that it augments.

    Only training examples can be changed by it: what judges has no such parent.
    """

    model_config = ConfigDict(serialize_by_alias=True)
    judges = False
    reads_model = True

    from_: str = Option("", alias="from")
    """Stage (or `recipe/stage`) whose network is read, with a head that predicts masked tokens."""
    _folder: Path | None = PrivateAttr(None)

    @property
    def model(self) -> Path:
        """Folder of the model that is read. AssertionError in a recipe, of which nothing is computed yet."""
        assert self._folder is not None, f"{self.name}: `reading` says which model is read"
        return self._folder

    def reading(self, folder: Path) -> Self:
        """This attack with the model in `folder`; without the name of its stage."""
        result = self.model_copy(update={"from_": ""})
        result._folder = folder
        return result


def attacked(row: Row, family: TaskFamily, change: Change) -> dict[str, Any]:
    """`row` with `change` applied to its texts, once each, in column order.

    Columns of answers that are text or tags are unchanged; spans that other columns quote by position are unchanged,
    and their positions are updated.
    """
    quoted = family.quoted_spans(row)
    changed: dict[str, str] = {}
    for column, spans in quoted.items():
        text, before, made = str(row[column]), 0, ""
        for begin, end in _merged(spans):
            made += _change_inside(change, text[before:begin])
            for first, behind in spans:
                if begin <= first < end:
                    changed[text[first:behind]] = text[first:behind]
                    # the text before a quotation: its length gives the family the new position
                    changed[text[:first]] = made + text[begin:first]
            made += text[begin:end]
            before = end
        changed[text] = made + _change_inside(change, text[before:])
    result = family.repair_texts(row, lambda text: changed[text] if text in changed else _change_inside(change, text))
    result |= {name: row[name] for name in family.target if "string" in family.columns[name]}
    if quoted and family.problem(result) is not None:
        # the quoted text is also a prefix of its text, so its new position is ambiguous: the row stays as it is
        return dict(row)
    return {**row, **result} | ({"text": family.text(result)} if "text" in row else {})


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """`spans` in order, touching or overlapping ones merged."""
    whole: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if whole and begin <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((begin, end))
    return whole


def _change_inside(change: Change, text: str) -> str:
    """`text` changed, with its leading and trailing spaces; unchanged if it has no word or would become empty."""
    inner = text.strip()
    made = change(inner).strip() if inner else ""
    first = text.find(inner)
    return text[:first] + made + text[first + len(inner) :] if made else text


def _listed(words: frozenset[str]) -> str:
    return ", ".join(sorted(words))
