"""Which examples keep their labels, and which texts are the task's own text without labels; the same for all steps."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.settings.task import Task
from pipelines.corpora.shards.folders import manifest, write_table
from pipelines.corpora.shards.tables import TEXTS, ExampleRows, Row
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.drawing import draw_labelled

FROM_TRAIN = "train"
"""Value of the column `collection` for texts of the training examples."""


@dataclass(frozen=True)
class LabelledDraw:
    """Training examples that keep their labels, and rows of plain text from the others."""

    labelled: list[Row]
    without_labels: list[Row]
    """Rows `text, source, collection`; with the table of unlabelled text they are the task's own text."""
    unlabelled: bool
    """Whether the task's own text differs from the text of the labelled examples."""

    def write(self, folder: Path) -> Path:
        """Write the table of texts without labels from scratch: a killed process may have left part of it."""
        shutil.rmtree(folder, ignore_errors=True)
        write_table(folder, TEXTS, self.without_labels, Tally())
        return folder


def divide_training(rows: Sequence[Row], task: Task) -> tuple[list[Row], list[Row]]:
    """Training rows of a task that keep their labels, and the others. Raises DataError as `draw_labelled`."""
    train = [row for row in rows if row[-1] == "train"]
    chosen = draw_labelled(ExampleRows(task.family, train), task.family, task.labels_per_class, task.labelled_examples)
    kept = [row for number, row in enumerate(train) if number in chosen]
    return kept, [row for number, row in enumerate(train) if number not in chosen]


def draw_examples(rows: Sequence[Row], settings: DatasetSettings, unlabelled: Path) -> LabelledDraw:
    """Draw the labelled examples from the training rows of the main task.

    If there is no other text without labels, the labelled texts are the task's own text. Raises DataError when a class,
    or the whole task, has too few examples left.
    """
    labelled, others = divide_training(rows, settings.main)
    has_others = bool(others or manifest(unlabelled)["documents"])
    return LabelledDraw(
        labelled, [(row[0], row[-2], FROM_TRAIN) for row in (others if has_others else labelled)], has_others
    )
