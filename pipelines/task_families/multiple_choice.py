"""Multiple choice: the text that answers a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pipelines.task_families import Answer, Problem, Row, TaskFamily

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_CHOICE = -1


class MultipleChoice(TaskFamily, name="multiple_choice"):
    """Choose the text that answers a question about another text; accuracy. The number of choices may vary."""

    paper: ClassVar[str] = "arXiv:1704.04683"
    columns: ClassVar[dict[str, str]] = {
        "context": "string",
        "question": "string",
        "choices": "list<string>",
        "answer": "int64",
    }
    target: ClassVar[tuple[str, ...]] = ("answer",)
    hub_category: ClassVar[str | None] = "multiple-choice"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)
    shared: ClassVar[tuple[str, ...]] = ("context",)
    optional: ClassVar[frozenset[str]] = frozenset({"context", "question"})

    def text(self, row: Row) -> str:
        """The question, the choices and the text."""
        return "\n".join([row["question"] or "", *row["choices"], row["context"] or ""]).strip()

    def problem(self, row: Row) -> Problem | None:
        """Neither question nor text, fewer than two choices, an empty choice, or an answer that is not an index of
        them."""
        choices, answer = row["choices"] or [], row["answer"]
        if not (row["question"] or "").strip() and not (row["context"] or "").strip():
            return Problem("question and context are empty", "the columns 'question' and 'context' are both empty")
        if len(choices) < 2:
            message = f"the column 'choices' holds {len(choices)}, expected two or more"
            return Problem("choices holds fewer than two", message)
        if any(not (choice or "").strip() for choice in choices):
            return Problem("choices holds an empty one", "the column 'choices' holds an empty choice")
        if answer is None or not 0 <= answer < len(choices):
            message = f"the column 'answer' holds {answer!r}, expected an index from 0 to {len(choices) - 1}"
            return Problem("answer is none of the choices", message)
        return None

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Empty: every question has its own answers."""
        return []

    def gold(self, row: Row) -> Answer:
        """Index of the correct choice."""
        return int(row["answer"])

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 1]: 1 for the correct choice."""
        import numpy as np

        right = [float(correct == given) for correct, given in zip(gold, answers, strict=True)]
        return np.asarray(right, dtype=np.float64).reshape(-1, 1)

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Accuracy."""
        return {"accuracy": float(statistics.mean())}

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`question: … choice1: … choice2: … context: … answer:`, without empty fields."""
        parts = [f"choice{number}: {choice}" for number, choice in enumerate(row["choices"], 1)]
        before = [f"question: {row['question']}"] if row["question"] else []
        after = [f"context: {row['context']}"] if row["context"] else []
        return " ".join([*before, *parts, *after, "answer:"])

    def answer_text(self, row: Row) -> str:
        """`choice2`, counted from 1 (Raffel et al. 2019, arXiv:1910.10683, appendix D.4)."""
        return f"choice{row['answer'] + 1}"

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """Index of the choice that was named by its number or its own words; −1 for any other text."""
        answer = " ".join(text.split())
        named = re.fullmatch(r"choice ?(\d{1,9})", answer)
        if named and 1 <= int(named[1]) <= len(row["choices"]):
            return int(named[1]) - 1
        words = [" ".join(choice.split()) for choice in row["choices"]]
        return words.index(answer) if answer in words else NO_CHOICE
