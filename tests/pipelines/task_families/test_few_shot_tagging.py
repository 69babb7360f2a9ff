"""Few-shot tags: answers as text."""

from __future__ import annotations

from pipelines.task_families import TaskFamily
from tests.pipelines.task_families.rows import ROWS


def test_entities_of_types_that_the_support_has_are_read() -> None:
    few, row = TaskFamily.model_validate("few_shot_tagging"), ROWS["few_shot_tagging"]
    assert few.labels([row]) == []
    assert few.read_answer("person: Ada; place: London", row, []) == row["tags"]
