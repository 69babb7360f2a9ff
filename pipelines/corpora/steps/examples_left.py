"""Check that a task keeps enough examples after a step, and say which of its examples were lost to what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipelines.corpora.shards.tables import ExampleRows, Row
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.collect import check_labels
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, PARTS

SAME_TEXT, OTHER_LABEL, OVERLAP = "same text in ", "same text, other label", "overlap"
"""Reasons, after the part, for which steps drop examples."""


def check_examples_left(
    dataset: str, task: str, family: TaskFamily, rows: Sequence[Row], dropped: Mapping[str, int]
) -> None:
    """Raise DataError when a label cannot be learned from the rows of a task, or a part of it is empty.

    `dropped` counts what the steps so far dropped, by part and reason: the error says whether examples leaked,
    repeated, or contradicted each other, and how many.
    """
    examples = {part: ExampleRows(family, [row for row in rows if row[-1] == part]) for part in PARTS}
    problem = _problem(examples, family)
    if problem is None:
        return
    of_task = "" if task == MAIN else f"tasks.{task}: "
    causes = "; ".join(_causes({part: len(some) for part, some in examples.items()}, dropped))
    raise DataError(
        f"{dataset}: {of_task}{causes}; after that, {problem}" if causes else f"{dataset}: {of_task}{problem}"
    )


def dropped_so_far(history: Sequence[Mapping[str, Any]], table: str, tally: Tally) -> Counter[str]:
    """Reason → number of rows of `table` that the steps of a history, and the step that counts in `tally`, dropped."""
    counts = Counter(tally.dropped)
    for step in history:
        counts.update(step["tables"].get(table, {}).get("dropped", {}))
    return counts


def _problem(examples: Mapping[str, Sequence[Any]], family: TaskFamily) -> str | None:
    for part in PARTS:
        if not examples[part]:
            return f"the {part} split has no examples left; provide more, with texts of their own"
    try:
        check_labels(examples, family)
    except DataError as mistake:
        return str(mistake)
    return None


def _causes(left: Mapping[str, int], dropped: Mapping[str, int]) -> Iterator[str]:
    for part in PARTS:
        of_part = {
            reason.removeprefix(f"{part}: "): number
            for reason, number in dropped.items()
            if reason.startswith(f"{part}: ")
        }
        total = left[part] + sum(of_part.values())
        leaked = sum(
            number
            for reason, number in of_part.items()
            if reason == OVERLAP or (reason.startswith(SAME_TEXT) and reason != SAME_TEXT + part)
        )
        where = {"train": "a validation or test example", "validation": "a test or training example"}
        for word, number, says in (
            ("leak", leaked, f"overlap {where.get(part, 'an example of another part')}"),
            ("duplicates", of_part.get(SAME_TEXT + part, 0), "repeat the text of another"),
            ("contradiction", of_part.get(OTHER_LABEL, 0), "have the text of another, but another label"),
        ):
            if number:
                yield f"{word}: {number:,} of {total:,} {_ADJECTIVES[part]} examples {says}"


_ADJECTIVES = {"train": "training", "validation": "validation", "test": "test"}
