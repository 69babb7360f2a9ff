"""The texts of an export: rows of labelled tables, or plain texts, as batches of one example without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipelines.errors import DataError
from pipelines.models.opening import ModelRecord, open_config, open_tokenizer
from pipelines.networks.text_encoder import TextEncoder
from pipelines.serving.answering.answerer import Answerer
from pipelines.serving.exporting.export import ExportData
from pipelines.serving.runtimes import Compute
from pipelines.serving.runtimes.model_inputs import ModelInputs
from pipelines.task_families import Row, Task
from pipelines.task_families.encoding import FieldArrays
from pipelines.vocabulary import Field

CALIBRATED = 128
"""Maximum number of texts that 8-bit scales are calibrated on."""
CHECKED = 256
"""Maximum number of texts on which answers are compared."""
SCORED = 1000
"""Maximum number of labelled examples that are scored: enough to show a runtime's loss; the whole table takes long in
float32."""


def task_of(folder: Path) -> Task | None:
    """The task that the model in `folder` was trained to answer; None if it records none."""
    record = ModelRecord.read(open_config(folder))
    return None if record is None else record.task


def export_data(
    folder: Path, described: str, calibration: Sequence[Row], checked: Sequence[Row], labelled: Sequence[Row] = ()
) -> ExportData:
    """Data of an export, from examples of the task of `folder`, or rows with a `text` if it has none; `labelled` ones
    are scored.

    Surplus rows are dropped at even intervals. Raises DataError for an example that the model cannot read.
    """
    task, scored = task_of(folder), _evenly_spaced(labelled, SCORED)
    data = ExportData(
        described,
        _rows(folder, _evenly_spaced(calibration, CALIBRATED)),
        _rows(folder, _evenly_spaced(checked, CHECKED)),
    )
    if task is None or not scored:
        return data

    def score(compute: Compute) -> float:
        given = Answerer(folder, compute=compute).answer(scored)
        family = task.family
        statistics = family.statistics([family.gold(row) for row in scored], given, task.labels)
        return round(family.scores(statistics)[family.metrics[0]], 6)

    description = f"{described}, {len(scored)} of them scored"
    return replace(data, described=description, score=score, metric=task.family.metrics[0])


def alternating(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Rows to calibrate on and rows to check: alternate rows, or all rows for both if they are few."""
    return (rows[::2], rows[1::2]) if len(rows) >= 2 * CALIBRATED else (rows, rows)


def _evenly_spaced(rows: Sequence[Row], most: int) -> list[Row]:
    indices = np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int)
    return [rows[index] for index in indices]


def _rows(folder: Path, rows: Sequence[Row]) -> list[ModelInputs]:
    """Each of `rows` as inputs of the model in `folder`."""
    record = ModelRecord.read(open_config(folder))
    if record is None or record.task is None:
        texts = [str(row["text"]) for row in rows]
        ids = [np.asarray([row], dtype=np.int64) for row in TextEncoder(folder).encode(texts) if row]
        return [(row, np.ones_like(row), None) for row in ids]
    tokenizer = open_tokenizer(folder)
    if not rows:
        return []
    encoded = record.head.encode(rows, record.task, tokenizer, int(tokenizer.model_max_length), answers=False)
    return [_one(encoded.collate(np.asarray([item]))) for item in range(len(encoded))]


def _one(fields: FieldArrays) -> ModelInputs:
    mask = fields[Field.ATTENTION_MASK]
    if not mask.any():
        raise DataError("a text without any token cannot be compared; remove it from the texts")
    width = int(mask.sum(axis=1).max())
    types = fields.get(Field.TOKEN_TYPE_IDS)
    return fields[Field.INPUT_IDS][:, :width], mask[:, :width], None if types is None else types[:, :width]
