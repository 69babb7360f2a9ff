"""Few-shot tagging: a tag for every word, with types that a few tagged sentences of the example introduce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pipelines.task_families import Answer, Problem, Row
from pipelines.task_families.tagging import OUTSIDE, Tagging
from pipelines.task_families.writing_systems import join_words


class FewShotTagging(Tagging, name="few_shot_tagging"):
    """An IOB2 tag for every word of a sentence, of the types that its support has: a few sentences with their tags.

    Scored as tagging. The types of one example need not be those of another, so that a table has no closed set of them.
    """

    paper: ClassVar[str] = "arXiv:2006.05702"
    columns: ClassVar[dict[str, str]] = {
        "tokens": "list<string>",
        "tags": "list<string>",
        "support_tokens": "list<list<string>>",
        "support_tags": "list<list<string>>",
    }
    hub_category: ClassVar[str | None] = None

    def text(self, row: Row) -> str:
        """The words as a sentence, without those of the support: several sentences may have the same."""
        return join_words(row["tokens"])

    def problem(self, row: Row) -> Problem | None:
        """What is wrong with tagged sentences, that of the example first; no support, or a type that it lacks."""
        if problem := super().problem(row):
            return problem
        tokens, tags = row["support_tokens"] or [], row["support_tags"] or []
        if not tokens:
            return Problem("support_tokens is empty", "the column 'support_tokens' is empty")
        if len(tokens) != len(tags):
            message = f"the column 'support_tags' holds {len(tags)} sentences, 'support_tokens' {len(tokens)}"
            return Problem("not as many support sentences with tags", message)
        for number, (words, given) in enumerate(zip(tokens, tags, strict=True)):
            if problem := super().problem({"tokens": words, "tags": given}):
                return Problem(f"support: {problem.reason}", f"support sentence {number}: {problem}")
        if missing := sorted(types_of([row["tags"]]) - types_of(tags)):
            message = f"the column 'tags' holds the type {missing[0]!r}, which no support sentence has"
            return Problem("tags has a type that the support lacks", message)
        return None

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Empty: every example has its own types."""
        return []

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`example: … entities: … text: … entities:`, an example for each support sentence."""
        examples = [
            f"example: {join_words(tokens)} entities: {self.answer_text({'tokens': tokens, 'tags': tags})}"
            for tokens, tags in zip(row["support_tokens"], row["support_tags"], strict=True)
        ]
        return " ".join([*examples, super().source(row, labels)])

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """As for tagging, with the types of the support."""
        return super().read_answer(text, row, tags_of(row))


def tags_of(row: Row) -> list[str]:
    """`O`, then both tags of every type of the support, sorted by type."""
    return [OUTSIDE, *(f"{prefix}-{kind}" for kind in sorted(types_of(row["support_tags"])) for prefix in "BI")]


def types_of(sentences: Sequence[Sequence[str]]) -> set[str]:
    """The types of entities in sentences of IOB2 tags."""
    return {tag[2:] for tags in sentences for tag in tags if tag != OUTSIDE}
