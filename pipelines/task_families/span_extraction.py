"""Span extraction: the words of a text that answer a question, or that none do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.task_families import Answer, LeftOut, Problem, Row, TaskFamily, empty
from pipelines.task_families.answer_overlap import exact, overlap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOTHING = "unanswerable"
"""The text that says there is no answer."""


class SpanExtraction(TaskFamily, name="span_extraction"):
    """The words of a text that answer a question, or that none do; F1 and exact match as SQuAD's script counts them.

    Chinese answers are compared by characters, as the script of CMRC 2018 does (arXiv:1810.07366).
    """

    paper: ClassVar[str] = "arXiv:1806.03822"
    columns: ClassVar[dict[str, str]] = {
        "context": "string",
        "question": "string",
        "answer_texts": "list<string>",
        "answer_starts": "list<int64>",
    }
    target: ClassVar[tuple[str, ...]] = ("answer_texts", "answer_starts")
    hub_category: ClassVar[str | None] = "question-answering"
    metrics: ClassVar[tuple[str, ...]] = ("f1", "exact_match")
    shared: ClassVar[tuple[str, ...]] = ("context",)

    def text(self, row: Row) -> str:
        """The question and the text."""
        return f"{row['question']}\n{row['context']}"

    def problem(self, row: Row) -> Problem | None:
        """An empty question or text, or an answer that does not stand where it is said to."""
        if problem := empty(row, "context", "question"):
            return problem
        texts, starts = row["answer_texts"] or [], row["answer_starts"] or []
        if len(texts) != len(starts):
            told = f"the column 'answer_starts' holds {len(starts)} places for {len(texts)} answers"
            return Problem("not as many answer_starts as answer_texts", told)
        if not all((text or "").strip() for text in texts):
            told = "the column 'answer_texts' holds an empty answer; a question without answer has an empty list"
            return Problem("answer_texts holds an empty answer", told)
        lost = [
            (text, start)
            for text, start in zip(texts, starts, strict=True)
            if start is None or start < 0 or row["context"][start : start + len(text)] != text
        ]
        if lost:
            told = "the answer {!r} does not stand at character {} of 'context'".format(*lost[0])
            return Problem("an answer does not stand at its answer_start", told, len(lost))
        return None

    def published(self, record: Row, left_out: LeftOut) -> Row:
        """Also a question as `datasets` has it: `answers: {text: […], answer_start: […]}`."""
        answers = record.get("answers")
        if "answer_texts" in record or not isinstance(answers, Mapping):
            return record
        return {**record, "answer_texts": answers.get("text"), "answer_starts": answers.get("answer_start")}

    def repaired(self, row: Row, repair: Callable[[str], str]) -> dict[str, Any]:
        """As every family; each answer then starts where it stands nearest to its old place, −1 where it stands no more."""
        result = super().repaired(row, repair)
        result["answer_starts"] = [
            nearest(result["context"], text, len(repair(row["context"][:start])))
            for text, start in zip(result["answer_texts"], row["answer_starts"], strict=True)
        ]
        return result

    def quoted(self, row: Row) -> dict[str, list[tuple[int, int]]]:
        """The answers."""
        places = zip(row["answer_starts"], row["answer_texts"], strict=True)
        return {"context": [(start, start + len(text)) for start, text in places]}

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """None: any words may be an answer."""
        return []

    def gold(self, row: Row) -> Answer:
        """Every accepted answer; none where the question has none."""
        return list(row["answer_texts"])

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 2]: F1 and exact match of each example, against the accepted answer that it fits best."""
        import numpy as np

        rows = np.zeros((len(gold), 2))
        for row, accepted, given in zip(rows, gold, answers, strict=True):
            wanted = [answer for answer in accepted if answer.strip()] or [""]
            row[:] = max(overlap(one, given) for one in wanted), max(exact(one, given) for one in wanted)
        return rows

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Means over the examples."""
        f1, exact_match = statistics.mean(axis=0)
        return {"f1": float(f1), "exact_match": float(exact_match)}

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`question: … context: … answer:`"""
        return f"question: {row['question']} context: {row['context']} answer:"

    def answer_text(self, row: Row) -> str:
        """The first accepted answer, or `unanswerable`."""
        return str(row["answer_texts"][0]) if row["answer_texts"] else NOTHING

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """The text itself; empty where it says that there is no answer."""
        text = text.strip()
        return "" if text.casefold() == NOTHING else text


def nearest(context: str, text: str, start: int) -> int:
    """Where `text` stands in `context` nearest to `start`; −1 where it does not."""
    before, after = context.rfind(text, 0, start + len(text)), context.find(text, start)
    return min((found for found in (before, after) if found >= 0), key=lambda found: abs(found - start), default=-1)
