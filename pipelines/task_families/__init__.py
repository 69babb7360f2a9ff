"""Task families: what a labelled example is, what counts as an answer to it, and how answers are scored.

    table of examples ──▶ family.labels ─▶ Task ─▶ head.encode ─▶ batches ─▶ network ─▶ head.answer ─▶ answers
                     └──▶ family.gold ──────────────────────────▶ family.statistics(gold, answers) ─▶ family.scores

A family knows nothing of networks. A dataset has exactly one; a head says which ones it can answer (`Head.reads`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from pipelines.components import Component

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Row: TypeAlias = Mapping[str, Any]
"""One example: the family's columns."""
Answer: TypeAlias = Any
"""A label (str), a number (float), tags (list[str]), a span or a generated text (str), the index of a choice (int), a tree,
a ranking, a list of texts: the family's `gold` says which."""
LeftOut: TypeAlias = Callable[[str, str], None]
"""Told the reason and an excerpt of what was left out of an example."""
Lookup: TypeAlias = Mapping[str, Row]
"""The rows of a side table by their key."""


class Problem(str):
    """What is wrong with a row, in words that name the column; `reason` is the same for all rows with this mistake."""

    reason: str
    places: int
    """How many of the row's values have this mistake."""

    def __new__(cls, reason: str, told: str, places: int = 1) -> Self:
        self = super().__new__(cls, told)
        self.reason, self.places = reason, places
        return self


@dataclass(frozen=True)
class SideTable:
    """A further file of a task, to whose rows the examples refer by a key."""

    fields: dict[str, str]
    """Field → what it holds, in the words of `TaskFamily.columns`; the first is the key. A tsv file has them in this order."""
    optional: frozenset[str] = frozenset()
    """Fields that the file may lack: those are empty."""


class TaskFamily(Component):
    """A kind of labelled task."""

    usual: ClassVar[str] = "text_classification"

    columns: ClassVar[dict[str, str]]
    """Column of a labelled table → what it holds, in the words of pyarrow: string, double, int64, list<string>, list<int64>,
    list<list<string>>, list<list<int64>>. Every table also has `text`, all words of the example, which deduplication and
    decontamination read."""
    target: ClassVar[tuple[str, ...]]
    """The columns among them that hold the answer."""
    metrics: ClassVar[tuple[str, ...]]
    """Names of the scores, the first of which early stopping, model choice and verdicts look at. All lie in [−1, 1], more
    is better."""

    fields: ClassVar[dict[str, str] | None] = None
    """What a record of the family's files holds, as `columns` does; None: the columns. A tsv file has them in this order."""
    optional: ClassVar[frozenset[str]] = frozenset()
    """The fields that a file may lack: those are empty."""
    side_tables: ClassVar[dict[str, SideTable]] = {}
    """Key of a task in files → the further file that it names."""
    shared: ClassVar[tuple[str, ...]] = ()
    """The columns that several examples may have in common; where parts are drawn, such examples stay together."""

    hub_category: ClassVar[str | None] = None
    """What the Hugging Face Hub calls such tasks, where it has a word for them."""
    of_one_text: ClassVar[bool] = False
    """Whether an example is one text and its answer one of the labels: any text is then an example without its answer."""

    @abstractmethod
    def text(self, row: Row) -> str:
        """All words of an example, its answer left out."""

    @abstractmethod
    def problem(self, row: Row) -> Problem | None:
        """What is wrong with a row, naming the column; None when it is a valid example."""

    def published(self, record: Row, left_out: LeftOut) -> Row:
        """The family's fields of a record in a form that its benchmarks are published in; any other record as it is."""
        return record

    def looked_up(self, record: Row, tables: Mapping[str, Lookup]) -> dict[str, Any]:
        """The columns of a record's fields, the rest taken from the side tables; what is not found there is empty."""
        return {name: record[name] for name in self.columns}

    def completed(self, parts: Mapping[str, Sequence[dict[str, Any]]]) -> None:
        """Add to the examples what they must know of each other, once those of all parts are read."""

    def repaired(self, row: Row, repair: Callable[[str], str]) -> dict[str, Any]:
        """The example with `repair` done to every text in it. A family whose columns point into one another overrides it."""
        repairs: dict[str, Callable[[Any], Any]] = {
            "string": repair,
            "list<string>": lambda texts: [*map(repair, texts)],
            "list<list<string>>": lambda rows: [[*map(repair, texts)] for texts in rows],
        }
        return {
            name: repairs[kind](row[name]) if kind in repairs and row[name] is not None else row[name]
            for name, kind in self.columns.items()
        }

    def quoted(self, row: Row) -> dict[str, list[tuple[int, int]]]:
        """Column of text → the characters of it that other columns quote by their place: first, and behind the last.

        What changes an example and must leave its answer right leaves these as they are.
        """
        return {}

    @abstractmethod
    def labels(self, rows: Sequence[Row]) -> list[str]:
        """The closed set of answers (or of tags) in a fixed order; empty where answers are open."""

    @abstractmethod
    def gold(self, row: Row) -> Answer:
        """The right answer of an example, in the form that `statistics` compares."""

    @abstractmethod
    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, S]: one row an example, from which `scores` are computed for any resample of the examples."""

    @abstractmethod
    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """The value of every metric over the rows of `statistics`, as the benchmark of this family defines it."""

    def scorer(self, metric: str) -> Callable[[NDArray[np.float64]], float]:
        """The score called `metric` as a function of the statistics of any examples."""
        return lambda statistics: self.scores(statistics)[metric]

    @abstractmethod
    def source(self, row: Row, labels: Sequence[str]) -> str:
        """The example as one text that ends where its answer should begin (Raffel et al. 2019, §2.4, appendix D)."""

    @abstractmethod
    def answer_text(self, row: Row) -> str:
        """The right answer as text: what a text-to-text model is trained to write."""

    @abstractmethod
    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """What a generated text answers. Text that is no answer counts as a wrong one; it is never an error."""


def empty(row: Row, *columns: str) -> Problem | None:
    """The problem of the first of these columns of text that holds none."""
    name = next((name for name in columns if not (row[name] or "").strip()), None)
    return Problem(f"{name} is empty", f"the column {name!r} is empty") if name is not None else None


@dataclass(frozen=True)
class Task:
    """What a labelled stage is asked: a family, and the closed set of answers found in the training table."""

    family: TaskFamily
    labels: tuple[str, ...]
