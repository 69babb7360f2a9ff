"""Span extraction: the span of a text that answers a question, or that there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.task_families import Answer, OmissionCallback, Problem, Row, TaskFamily, empty_text_problem
from pipelines.task_families.answer_overlap import exact_match_score, f1_score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNANSWERABLE = "unanswerable"
"""Generated text for a question without an answer."""


class SpanExtraction(TaskFamily, name="span_extraction"):
    """The span of a text that answers a question, if there is one; F1 and exact match as in SQuAD's script.

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
        """An empty question or text, or an answer that is not at its offset."""
        if problem := empty_text_problem(row, "context", "question"):
            return problem
        texts, starts = row["answer_texts"] or [], row["answer_starts"] or []
        if len(texts) != len(starts):
            message = f"the column 'answer_starts' holds {len(starts)} offsets for {len(texts)} answers"
            return Problem("not as many answer_starts as answer_texts", message)
        if not all((text or "").strip() for text in texts):
            message = "the column 'answer_texts' holds an empty answer; a question without answer has an empty list"
            return Problem("answer_texts holds an empty answer", message)
        misplaced = [
            (text, start)
            for text, start in zip(texts, starts, strict=True)
            if start is None or start < 0 or row["context"][start : start + len(text)] != text
        ]
        if misplaced:
            message = "the answer {!r} is not at character {} of 'context'".format(*misplaced[0])
            return Problem("an answer is not at its answer_start", message, len(misplaced))
        return None

    def convert_published(self, record: Row, on_omission: OmissionCallback) -> Row:
        """Convert a question in the format of `datasets`: `answers: {text: […], answer_start: […]}`."""
        answers = record.get("answers")
        if "answer_texts" in record or not isinstance(answers, Mapping):
            return record
        return {**record, "answer_texts": answers.get("text"), "answer_starts": answers.get("answer_start")}

    def repair_texts(self, row: Row, repair: Callable[[str], str]) -> dict[str, Any]:
        """Repair all texts and move each answer's offset to its nearest occurrence; −1 where it no longer occurs."""
        result = super().repair_texts(row, repair)
        result["answer_starts"] = [
            nearest_start(result["context"], text, len(repair(row["context"][:start])))
            for text, start in zip(result["answer_texts"], row["answer_starts"], strict=True)
        ]
        return result

    def quoted_spans(self, row: Row) -> dict[str, list[tuple[int, int]]]:
        """Spans of the answers."""
        answers = zip(row["answer_starts"], row["answer_texts"], strict=True)
        return {"context": [(start, start + len(text)) for start, text in answers]}

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Empty: any span may be an answer."""
        return []

    def gold(self, row: Row) -> Answer:
        """All accepted answers; empty for an unanswerable question."""
        return list(row["answer_texts"])

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 2]: F1 and exact match of each example against its best-matching accepted answer."""
        import numpy as np

        rows = np.zeros((len(gold), 2))
        for row, accepted, given in zip(rows, gold, answers, strict=True):
            references = [answer for answer in accepted if answer.strip()] or [""]
            row[:] = (
                max(f1_score(one, given) for one in references),
                max(exact_match_score(one, given) for one in references),
            )
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
        return str(row["answer_texts"][0]) if row["answer_texts"] else UNANSWERABLE

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """The text itself; empty for `unanswerable`."""
        text = text.strip()
        return "" if text.casefold() == UNANSWERABLE else text


def nearest_start(context: str, text: str, start: int) -> int:
    """Offset of the occurrence of `text` in `context` nearest to `start`; −1 without one."""
    before, after = context.rfind(text, 0, start + len(text)), context.find(text, start)
    return min(
        (offset for offset in (before, after) if offset >= 0), key=lambda offset: abs(offset - start), default=-1
    )
