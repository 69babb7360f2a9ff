"""Table question answering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pipelines.task_families import Answer, Lookup, Problem, Row, SideTable, TaskFamily, empty_text_problem
from pipelines.task_families.denotations import normalized, same_denotation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BETWEEN = " | "
_AND = "; "


class TableQuestions(TaskFamily, name="table_questions"):
    """Questions about a table; denotation accuracy as in WikiTableQuestions' script, and exact match.

    Answers may be cells, or be computed from them.
    """

    paper: ClassVar[str] = "arXiv:1508.00305"
    columns: ClassVar[dict[str, str]] = {
        "question": "string",
        "table_id": "string",
        "header": "list<string>",
        "rows": "list<list<string>>",
        "answers": "list<string>",
    }
    fields: ClassVar[dict[str, str] | None] = {"question": "string", "table_id": "string", "answers": "list<string>"}
    optional: ClassVar[frozenset[str]] = frozenset({"table_id"})
    side_tables: ClassVar[dict[str, SideTable]] = {
        "tables": SideTable({"table_id": "string", "header": "list<string>", "rows": "list<list<string>>"})
    }
    target: ClassVar[tuple[str, ...]] = ("answers",)
    metrics: ClassVar[tuple[str, ...]] = ("denotation_accuracy", "exact_match")
    shared: ClassVar[tuple[str, ...]] = ("table_id",)

    answers_from: Literal["anything", "cells"] = "anything"
    """`cells`: an answer that is not a cell of its table is an error in the data."""

    def text(self, row: Row) -> str:
        """The question, then the table, one row per line."""
        return "\n".join([row["question"], *(_BETWEEN.join(cells) for cells in [row["header"], *row["rows"]])])

    def join_side_tables(self, record: Row, tables: Mapping[str, Lookup]) -> dict[str, Any]:
        """Add header and rows of the table; both empty for an unknown id."""
        table = tables["tables"].get(record["table_id"], {})
        return {**record, "header": table.get("header", []), "rows": table.get("rows", [])}

    def problem(self, row: Row) -> Problem | None:
        """An empty question, no answer or an empty one, an unknown table, rows not as wide as the header; with `cells`,
        an answer that is not a cell. A table that is given with its question needs no id."""
        if problem := empty_text_problem(row, "question"):
            return problem
        header, rows, answers = row["header"] or [], row["rows"] or [], row["answers"] or []
        if not header:
            message = (
                f"the column 'table_id' holds {row['table_id']!r}, which is not in 'tables', or has no header there"
            )
            return Problem("table_id is not in tables", message)
        ragged = next((number for number, cells in enumerate(rows, 1) if len(cells) != len(header)), None)
        if ragged is not None:
            message = f"the column 'rows' holds {len(rows[ragged - 1])} cells in row {ragged}, the header {len(header)}"
            return Problem("a row of the table is not as wide as its header", message)
        if not answers or not all((answer or "").strip() for answer in answers):
            return Problem("answers is empty", f"the column 'answers' holds {answers!r}, expected at least one text")
        if self.answers_from == "cells":
            cells = {normalized(cell) for cell in [*header, *(cell for row in rows for cell in row)]}
            outside = next((answer for answer in answers if normalized(answer) not in cells), None)
            if outside is not None:
                message = (
                    f"the column 'answers' holds {outside!r}, which is not a cell of the table {row['table_id']!r}"
                )
                return Problem("an answer is not a cell of its table", message)
        return None

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Empty: any text may be an answer."""
        return []

    def gold(self, row: Row) -> Answer:
        """The answers, all of which are required."""
        return list(row["answers"])

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 2]: 1 for answers with the correct denotation; 1 for the same texts in any order."""
        import numpy as np

        rows = [
            (same_denotation(right, given), sorted(right) == sorted(given))
            for right, given in zip(gold, answers, strict=True)
        ]
        return np.asarray(rows, dtype=np.float64).reshape(-1, 2)

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Means over the questions."""
        denoted, exact = statistics.mean(axis=0)
        return {"denotation_accuracy": float(denoted), "exact_match": float(exact)}

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`question: … table: header row 1: … row 2: … answer:` (Liu et al. 2021, arXiv:2107.07653, §2)"""
        lines = [f"row {number}: {_BETWEEN.join(cells)}" for number, cells in enumerate(row["rows"], 1)]
        return " ".join([f"question: {row['question']} table: {_BETWEEN.join(row['header'])}", *lines, "answer:"])

    def answer_text(self, row: Row) -> str:
        """The answers, separated by semicolons."""
        return _AND.join(row["answers"])

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """The texts separated by semicolons."""
        return [part.strip() for part in text.split(_AND.strip()) if part.strip()]
