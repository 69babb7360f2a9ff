"""Word senses: the definition of a word in its context."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.task_families import Answer, Lookup, OmissionCallback, Problem, Row, TaskFamily, empty_text_problem
from pipelines.task_families.span_extraction import nearest_start

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_DEFINITION = -1


class WordSenses(TaskFamily, name="word_senses"):
    """Choose the definition that a word has in a text; accuracy, and that of senses without a training example.

    The number of definitions may vary. A sense is its definition: two words with the same one share it.
    """

    paper: ClassVar[str] = "Raganato et al. 2017"
    columns: ClassVar[dict[str, str]] = {
        "context": "string",
        "word": "string",
        "word_index": "int64",
        "definitions": "list<string>",
        "answer": "int64",
        "unseen": "int64",
    }
    """`word_index` counts characters of the context from 0; `unseen` is 1 where no training example has the sense."""
    fields: ClassVar[dict[str, str] | None] = {name: kind for name, kind in columns.items() if name != "unseen"}
    target: ClassVar[tuple[str, ...]] = ("answer", "unseen")
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "unseen_accuracy", "unseen_above_chance")
    shared: ClassVar[tuple[str, ...]] = ("context",)

    def text(self, row: Row) -> str:
        """The context, then the word with its offset, since several examples may share a context, and its
        definitions."""
        return "\n".join([row["context"], f"{row['word']} {row['word_index']}", *row["definitions"]])

    def problem(self, row: Row) -> Problem | None:
        """An empty context or word, a word that is not at its index, fewer than two definitions, an empty one or two
        equal ones, or an answer that is not an index of them."""
        if problem := empty_text_problem(row, "context", "word"):
            return problem
        word, start = row["word"], row["word_index"]
        if start is None or start < 0 or row["context"][start : start + len(word)] != word:
            message = f"the column 'word' holds {word!r}, which is not at character {start} of 'context'"
            return Problem("word is not at word_index", message)
        definitions, answer = row["definitions"] or [], row["answer"]
        if len(definitions) < 2:
            message = f"the column 'definitions' holds {len(definitions)}, expected two or more"
            return Problem("definitions holds fewer than two", message)
        if any(not (definition or "").strip() for definition in definitions):
            return Problem("definitions holds an empty one", "the column 'definitions' holds an empty definition")
        if len(set(definitions)) < len(definitions):
            return Problem("definitions holds one twice", "the column 'definitions' holds a definition twice")
        if answer is None or not 0 <= answer < len(definitions):
            message = f"the column 'answer' holds {answer!r}, expected an index from 0 to {len(definitions) - 1}"
            return Problem("answer is none of the definitions", message)
        return None

    def convert_published(self, record: Row, on_omission: OmissionCallback) -> Row:
        """Convert a record with `text`, the word's `start` and `end`, its `candidates` with `sense` and `gloss`, and
        the correct `sense`, as tables made of SemCor and Senseval have them. Senses with the same gloss are one."""
        candidates = record.get("candidates")
        if not isinstance(candidates, Sequence) or not all(isinstance(one, Mapping) for one in candidates):
            return record
        start, end, text = record.get("start"), record.get("end"), record.get("text")
        glosses = {one.get("sense"): one.get("gloss") for one in candidates}
        definitions = list(dict.fromkeys(glosses.values()))
        correct = glosses.get(record.get("sense"))
        return {
            **record,
            "context": text,
            "word": text[start:end] if isinstance(text, str) and isinstance(start, int) else None,
            "word_index": start,
            "definitions": definitions,
            "answer": definitions.index(correct) if correct is not None else None,
        }

    def join_side_tables(self, record: Row, tables: Mapping[str, Lookup]) -> dict[str, Any]:
        """The columns of a record; `unseen` is set once all are read."""
        return {name: record.get(name, 0) for name in self.columns}

    def complete(self, parts: Mapping[str, Sequence[dict[str, Any]]]) -> None:
        """Set `unseen` of all examples."""
        seen = {_sense(row) for row in parts["train"]}
        for rows in parts.values():
            for row in rows:
                row["unseen"] = int(_sense(row) not in seen)

    def repair_texts(self, row: Row, repair: Callable[[str], str]) -> dict[str, Any]:
        """Repair all texts and move the word's index to its nearest occurrence; −1 where it no longer occurs."""
        result = super().repair_texts(row, repair)
        start = len(repair(row["context"][: row["word_index"]]))
        result["word_index"] = nearest_start(result["context"], result["word"], start)
        return result

    def quoted_spans(self, row: Row) -> dict[str, list[tuple[int, int]]]:
        """The word."""
        return {"context": [(row["word_index"], row["word_index"] + len(row["word"]))]}

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Empty: every word has its own definitions."""
        return []

    def gold(self, row: Row) -> Answer:
        """Index of the correct definition, the number of definitions, and whether no training example has the sense."""
        return int(row["answer"]), len(row["definitions"]), bool(row["unseen"])

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 3]: 1 for the correct definition; 1 for an unseen sense; the chance of a random definition."""
        import numpy as np

        rows = [
            (correct == given, unseen, 1 / count) for (correct, count, unseen), given in zip(gold, answers, strict=True)
        ]
        return np.asarray(rows, dtype=np.float64).reshape(-1, 3)

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Accuracy over all examples; that over unseen senses, and how far it is above a random choice among the
        definitions; 0 for the last two where no sense is unseen."""
        right, unseen, chance = statistics.T
        count = unseen.sum() or 1.0
        return {
            "accuracy": float(right.mean()),
            "unseen_accuracy": float((right * unseen).sum() / count),
            "unseen_above_chance": float(((right - chance) * unseen).sum() / count),
        }

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`word: … definition1: … definition2: … context: … answer:`, the word between `*` in the context (as in Raffel
        et al. 2019, appendix D.5)."""
        start, end, text = row["word_index"], row["word_index"] + len(row["word"]), row["context"]
        parts = [f"definition{number}: {definition}" for number, definition in enumerate(row["definitions"], 1)]
        marked = f"{text[:start]}*{text[start:end]}*{text[end:]}"
        return " ".join([f"word: {row['word']}", *parts, f"context: {marked}", "answer:"])

    def answer_text(self, row: Row) -> str:
        """`definition2`, counted from 1."""
        return f"definition{row['answer'] + 1}"

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """Index of the definition that was named by its number or its own words; −1 for any other text."""
        answer = " ".join(text.split())
        named = re.fullmatch(r"definition ?(\d{1,9})", answer)
        if named and 1 <= int(named[1]) <= len(row["definitions"]):
            return int(named[1]) - 1
        words = [" ".join(definition.split()) for definition in row["definitions"]]
        return words.index(answer) if answer in words else NO_DEFINITION


def _sense(row: Row) -> str:
    return str(row["definitions"][row["answer"]])
