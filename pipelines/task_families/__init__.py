"""Task families: what a labelled example is, what counts as an answer to it, and how answers are scored.

    table of examples ──▶ family.labels ─▶ Task ─▶ head.encode ─▶ batches ─▶ network ─▶ head.answer ─▶ answers
                     └──▶ family.gold ──────────────────────────▶ family.statistics(gold, answers) ─▶ family.scores

A family knows nothing of networks. A dataset has exactly one; a head says which ones it can answer (`Head.reads`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pipelines.components import Component

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Row: TypeAlias = Mapping[str, Any]
"""One example: the family's columns."""
Answer: TypeAlias = Any
"""A label (str), a number (float), tags (list[str]), a span or a generated text (str), the index of a choice (int)."""


class TaskFamily(Component):
    """A kind of labelled task."""

    usual: ClassVar[str] = "text_classification"

    columns: ClassVar[dict[str, str]]
    """Column of a labelled table → what it holds, in the words of pyarrow: string, double, int64, list<string>, list<int64>.
    Every table also has `text`, all words of the example, which deduplication and decontamination read."""
    target: ClassVar[tuple[str, ...]]
    """The columns among them that hold the answer."""
    metrics: ClassVar[tuple[str, ...]]
    """Names of the scores, the first of which early stopping, model choice and verdicts look at. All lie in [−1, 1], more
    is better."""

    of_one_text: ClassVar[bool] = False
    """Whether an example is one text and its answer one of the labels: any text is then an example without its answer."""

    @abstractmethod
    def text(self, row: Row) -> str:
        """All words of an example, its answer left out."""

    @abstractmethod
    def problem(self, row: Row) -> str | None:
        """What is wrong with a row, naming the column; None when it is a valid example."""

    def repaired(self, row: Row, repair: Callable[[str], str]) -> dict[str, Any]:
        """The example with `repair` done to every text in it. A family whose columns point into one another overrides it."""
        repairs: dict[str, Callable[[Any], Any]] = {
            "string": repair,
            "list<string>": lambda texts: [*map(repair, texts)],
        }
        return {
            name: repairs[kind](row[name]) if kind in repairs and row[name] is not None else row[name]
            for name, kind in self.columns.items()
        }

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

    @abstractmethod
    def source(self, row: Row, labels: Sequence[str]) -> str:
        """The example as one text that ends where its answer should begin (Raffel et al. 2019, §2.4, appendix D)."""

    @abstractmethod
    def answer_text(self, row: Row) -> str:
        """The right answer as text: what a text-to-text model is trained to write."""

    @abstractmethod
    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """What a generated text answers. Text that is no answer counts as a wrong one; it is never an error."""


@dataclass(frozen=True)
class Task:
    """What a labelled stage is asked: a family, and the closed set of answers found in the training table."""

    family: TaskFamily
    labels: tuple[str, ...]
