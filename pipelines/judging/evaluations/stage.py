"""The evaluate stage: all evaluations of a suite, over one cached set of predictions.

    evaluate(job)
      ├── evaluation.json        {"dataset": counts, "sections": {evaluation: its record}}
      ├── predictions.parquet    stage, seed, index, label, predicted, probabilities: one row per test example and model
      ├── samples.safetensors    the samples of figures that claims compare
      └── timings.safetensors    those of figures that a clock measured

All are deterministic in the models, the tables and the job's seed, except for the latencies that `footprint` and
`serving` measure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.context import EvaluationContext
from pipelines.judging.samples import SAMPLES, TIMINGS, write_samples
from pipelines.judging.subjects import JudgingJob, Subject
from pipelines.lineage.disk import atomic_write, write_text_atomically
from pipelines.lineage.results import Result
from pipelines.task_families.labelled_tables import MAIN

if TYPE_CHECKING:
    from pipelines.task_families import Answer

EVALUATION = "evaluation.json"
PREDICTIONS = "predictions.parquet"
PROBABILITY_DIGITS = 6
ROWS_AT_ONCE = 8192
"""Rows of predictions that are written together."""


class SuiteStage(Protocol):
    """A stage with a suite of evaluations."""

    @property
    def suite(self) -> Sequence[Evaluation]: ...


class EvaluateJob(JudgingJob, Protocol):
    """A job that runs a suite of evaluations."""

    @property
    def stage(self) -> SuiteStage: ...


def evaluate(job: EvaluateJob) -> Result:
    """Run the suite of `job.stage`, and write its record and the predictions into `job.out`.

    Raises RecipeError when an evaluation names a stage that is not judged, DataError when a table or a model cannot be
    used; both before anything is written.
    """
    context = EvaluationContext(job)
    for evaluation in job.stage.suite:
        for stage in evaluation.subjects:
            if stage not in context.subjects:
                raise RecipeError(
                    f"stage {job.stage_name!r}: {evaluation.name} names {stage!r}, which is not among the stages that "
                    f"it judges (start).{did_you_mean(stage, context.subjects)}"
                )
    headline: dict[str, float] = {}
    sections: dict[str, dict[str, Any]] = {}
    for evaluation in job.stage.suite:
        record = evaluation.measure(context)
        headline |= record.get("headline", {})
        sections[evaluation.name] = record
    document = {"dataset": _counts(context), "sections": sections}
    job.out.mkdir(parents=True, exist_ok=True)
    _write_predictions(context, job.out / PREDICTIONS)
    write_samples(context.samples, job.out / SAMPLES)
    write_samples(context.timings, job.out / TIMINGS)
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    write_text_atomically(job.out / EVALUATION, text + "\n")
    return Result(metrics=headline)


def _counts(context: EvaluationContext) -> dict[str, Any]:
    tables = {name: context.examples(name) for name in ("train", "validation", "test")}
    counts: dict[str, Any] = {
        "language": context.language,
        "family": context.family.name,
        "labels": context.labels,
        "texts": {name: len(rows) for name, rows in tables.items()},
        "per_label": {},
    }
    if context.task != MAIN:
        counts["task"] = context.task
    if context.family.is_single_text:
        counted = {name: Counter(str(row["label"]) for row in rows) for name, rows in tables.items()}
        counts["per_label"] = {
            name: {label: labels[label] for label in context.labels} for name, labels in counted.items()
        }
    return counts


def _write_predictions(context: EvaluationContext, path: Path) -> None:
    """Write one row per test example and model; answers that are not text are JSON, and only classifiers have
    probabilities."""
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema(
        [
            ("stage", pyarrow.string()),
            ("seed", pyarrow.int64()),
            ("index", pyarrow.int64()),
            ("label", pyarrow.string()),
            ("predicted", pyarrow.string()),
            ("probabilities", pyarrow.list_(pyarrow.float32())),
        ],
        # classes of the columns of `probabilities`, in order
        metadata={"labels": json.dumps(context.labels, ensure_ascii=False)},
    )
    size = len(context.rows)
    with atomic_write(path) as temporary, parquet.ParquetWriter(temporary, schema) as writer:
        for subject in (one for models in context.task_models.values() for one in models):
            for begin in range(0, size, ROWS_AT_ONCE):
                rows = slice(begin, min(size, begin + ROWS_AT_ONCE))
                columns = _prediction_columns(context, subject, rows)
                writer.write_table(pyarrow.table(columns, schema=schema))


def _prediction_columns(context: EvaluationContext, subject: Subject, rows: slice) -> dict[str, Any]:
    size = rows.stop - rows.start
    columns: dict[str, Any] = {
        "stage": [subject.stage] * size,
        "seed": [subject.seed] * size,
        "index": range(rows.start, rows.stop),
        "label": [_as_text(answer) for answer in context.gold[rows]],
    }
    if context.has_class_probabilities(subject):
        predicted = [context.labels[choice] for choice in context.predictions(subject)[rows]]
        probabilities: list[Any] = context.probabilities(subject)[rows].round(PROBABILITY_DIGITS).tolist()
    else:
        predicted = [_as_text(answer) for answer in context.answers(subject)[rows]]
        probabilities = [None] * size
    return {**columns, "predicted": predicted, "probabilities": probabilities}


def _as_text(answer: Answer) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
