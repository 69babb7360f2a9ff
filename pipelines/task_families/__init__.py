"""Task families: the columns of labelled examples, the form of answers, and their metrics.

    table of examples ──▶ family.labels ─▶ Task ─▶ head.encode ─▶ batches ─▶ network ─▶ head.answer ─▶ answers
                     └──▶ family.gold ──────────────────────────▶ family.statistics(gold, answers) ─▶ family.scores

Families are independent of networks. A dataset has exactly one family; a head declares which ones it supports
(`Head.reads`).
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

    from pipelines.task_families.tokenized import Annotator

Row: TypeAlias = Mapping[str, Any]
"""One example: column of the family → value."""
Answer: TypeAlias = Any
"""A label (str), a number (float), tags (list[str]), a span or a generated text (str), the index of a choice (int), a
tree, a ranking, or a list of texts: the type that the family's `gold` returns."""
OmissionCallback: TypeAlias = Callable[[str, str], None]
"""Called with the reason and an excerpt of what was omitted from an example."""
Lookup: TypeAlias = Mapping[str, Row]
"""Key → row of a side table."""


class Problem(str):
    """Error message of an invalid row, which names the column; `reason` is the same for all rows with this kind of
    error."""

    reason: str
    value_count: int
    """Number of the row's values with this error."""

    def __new__(cls, reason: str, message: str, value_count: int = 1) -> Self:
        self = super().__new__(cls, message)
        self.reason, self.value_count = reason, value_count
        return self


@dataclass(frozen=True)
class SideTable:
    """A further file of a task, whose rows examples refer to by key."""

    fields: dict[str, str]
    """Field → type, as in `TaskFamily.columns`; the first is the key. A tsv file has them in this order."""
    optional: frozenset[str] = frozenset()
    """Fields that may be missing in the file; they are then empty."""


class TaskFamily(Component):
    """A kind of labelled task."""

    default_name: ClassVar[str] = "text_classification"

    columns: ClassVar[dict[str, str]]
    """Column of a labelled table → type, by pyarrow's names: string, double, int64, list<string>, list<int64>,
    list<list<string>>, list<list<int64>>, list<list<double>>. Every table also has `text`, all words of the example,
    which deduplication and decontamination use."""
    target: ClassVar[tuple[str, ...]]
    """The columns that hold the answer."""
    metrics: ClassVar[tuple[str, ...]]
    """Names of the metrics; the first is used by early stopping, model selection and verdicts. All lie in [−1, 1];
    higher is better."""

    fields: ClassVar[dict[str, str] | None] = None
    """Field of a record in the family's files → type; None: the columns. A tsv file has them in this order."""
    optional: ClassVar[frozenset[str]] = frozenset()
    """Fields that may be missing in a file; they are then empty."""
    side_tables: ClassVar[dict[str, SideTable]] = {}
    """Key of a task in files → side table in the file that it names."""
    shared: ClassVar[tuple[str, ...]] = ()
    """Columns whose values several examples may share; such examples are kept in the same part when parts are drawn."""

    hub_category: ClassVar[str | None] = None
    """Task category on the Hugging Face Hub, if there is one."""
    is_single_text: ClassVar[bool] = False
    """Whether an example is a single text with one label, so that any text is an unlabelled example."""

    @abstractmethod
    def text(self, row: Row) -> str:
        """All words of an example, without its answer."""

    @abstractmethod
    def problem(self, row: Row) -> Problem | None:
        """The error in a row, naming the column; None for a valid example."""

    def convert_published(self, record: Row, on_omission: OmissionCallback) -> Row:
        """Convert a record in a published benchmark's format to the family's fields; other records are returned
        unchanged."""
        return record

    def join_side_tables(self, record: Row, tables: Mapping[str, Lookup]) -> dict[str, Any]:
        """The columns of a record, joined with the side tables; values missing there are empty."""
        return {name: record[name] for name in self.columns}

    def complete(self, parts: Mapping[str, Sequence[dict[str, Any]]]) -> None:
        """Add to the examples, in place, what depends on other examples, once all parts are read."""

    def repair_texts(self, row: Row, repair: Callable[[str], str]) -> dict[str, Any]:
        """Apply `repair` to every text of an example. Families with offsets into other columns override this."""
        repairs: dict[str, Callable[[Any], Any]] = {
            "string": repair,
            "list<string>": lambda texts: [*map(repair, texts)],
            "list<list<string>>": lambda rows: [[*map(repair, texts)] for texts in rows],
        }
        return {
            name: repairs[kind](row[name]) if kind in repairs and row[name] is not None else row[name]
            for name, kind in self.columns.items()
        }

    def quoted_spans(self, row: Row) -> dict[str, list[tuple[int, int]]]:
        """Text column → character spans (begin, end) that other columns refer to by offset.

        Changes that must preserve the answer leave these spans unchanged.
        """
        return {}

    @abstractmethod
    def labels(self, rows: Sequence[Row]) -> list[str]:
        """The closed set of answers (or tags) in a fixed order; empty for open answers."""

    @abstractmethod
    def gold(self, row: Row) -> Answer:
        """The correct answer of an example, in the form that `statistics` compares."""

    @abstractmethod
    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, S], one row per example, from which `scores` are computed for any resample of the examples."""

    @abstractmethod
    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Every metric over the rows of `statistics`, as the family's benchmark defines it."""

    def scorer(self, metric: str) -> Callable[[NDArray[np.float64]], float]:
        """A function: statistics of any examples → value of `metric`."""
        return lambda statistics: self.scores(statistics)[metric]

    @abstractmethod
    def source(self, row: Row, labels: Sequence[str]) -> str:
        """The example as one text after which the answer is to be generated (Raffel et al. 2019, §2.4, appendix D)."""

    @abstractmethod
    def answer_text(self, row: Row) -> str:
        """The correct answer as text: the target of a text-to-text model."""

    @abstractmethod
    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """Parse a generated text. A text that is not a valid answer counts as a wrong one and never raises."""


def empty_text_problem(row: Row, *columns: str) -> Problem | None:
    """The problem of the first of these text columns that is empty, if any."""
    name = next((name for name in columns if not (row[name] or "").strip()), None)
    return Problem(f"{name} is empty", f"the column {name!r} is empty") if name is not None else None


@dataclass(frozen=True)
class Task:
    """Task of a labelled stage: a family, the closed set of answers in the training table, and what stands alongside
    the tokens of its examples."""

    family: TaskFamily
    labels: tuple[str, ...]
    annotations: tuple[Annotator, ...] = ()
