"""The evaluate stage: every evaluation of a suite, over one cached set of predictions.

    evaluate(job)
      ├── evaluation.json        {"dataset": counts, "sections": {evaluation: its record}}
      └── predictions.parquet    stage, seed, index, label, predicted, probabilities: one row a test example and model

Both follow from the models, the tables and the job's seed alone, but for the latencies that `footprint` measures.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pipelines.components import did_you_mean
from pipelines.errors import DataError, RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.subjects import JudgingJob, Subject
from pipelines.lineage.disk import write_whole, written_whole
from pipelines.lineage.results import Result

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.serving.answering.answerer import Answerer
    from pipelines.serving.answering.inference import Predictor
    from pipelines.task_families import Answer, Row

EVALUATION = "evaluation.json"
PREDICTIONS = "predictions.parquet"
PROBABILITY_DIGITS = 6


class SuiteStage(Protocol):
    """The stage of such a job."""

    @property
    def suite(self) -> Sequence[Evaluation]: ...


class EvaluateJob(JudgingJob, Protocol):
    """A job that runs a suite of evaluations."""

    @property
    def stage(self) -> SuiteStage: ...


@dataclass(frozen=True)
class Split:
    """A labelled table: texts and, in the same order, their classes."""

    texts: list[str]
    labels: list[str]

    def __len__(self) -> int:
        return len(self.texts)


class EvaluationContext:
    """What an evaluation may ask about: the judged models, the labelled tables, and what the models predict."""

    def __init__(self, job: JudgingJob) -> None:
        self.language = job.language
        self.seed = job.seed
        self.threads = job.runtime.threads
        self.family = job.family
        self.subjects: dict[str, list[Subject]] = {}
        """Stage to its models, seeds ascending; stages in the order in which the recipe names them."""
        for subject in job.subjects:
            self.subjects.setdefault(subject.stage, []).append(subject)
        for models in self.subjects.values():
            models.sort(key=lambda subject: subject.seed)
        self.answering = {stage: models for stage, models in self.subjects.items() if models[0].answers}
        """Those among them that answer the dataset's task."""
        self.language_models = {stage: models for stage, models in self.subjects.items() if not models[0].answers}
        """Those that were trained on plain text."""
        self._tables = job.tables
        self._answers: dict[Path, list[Answer]] = {}
        self._statistics: dict[Path, NDArray[np.float64]] = {}
        self._predictors: dict[Path, Predictor] = {}
        self._answerers: dict[Path, Answerer] = {}
        self._probabilities: dict[Path, NDArray[np.float32]] = {}

    @cached_property
    def train(self) -> Split:
        return self._split("train")

    @cached_property
    def validation(self) -> Split:
        return self._split("validation")

    @cached_property
    def test(self) -> Split:
        return self._split("test")

    @cached_property
    def labels(self) -> list[str]:
        """The classes: those of the models, or, when none is judged, those of the training table."""
        for models in self.answering.values():
            if self.has_class_probabilities(models[0]):
                return self.predictor(models[0]).labels
        return self.family.labels(self.examples("train"))

    @cached_property
    def truth(self) -> NDArray[np.int64]:
        """int64 [N]: the class of each test text, as an index into `labels`."""
        import numpy as np

        unknown = sorted(set(self.test.labels) - set(self.labels))
        if unknown:
            known = ", ".join(self.labels)
            raise DataError(f"{self._tables['test']}: label {unknown[0]!r} is none of the models' classes ({known})")
        index = {label: position for position, label in enumerate(self.labels)}
        return np.asarray([index[label] for label in self.test.labels], dtype=np.int64)

    def has_class_probabilities(self, subject: Subject) -> bool:
        """Whether `subject` gives each class of a text a probability."""
        from pipelines.serving.answering.inference import has_class_probabilities

        return self.family.is_single_text and has_class_probabilities(subject.folder)

    def predictor(self, subject: Subject) -> Predictor:
        """The served form of `subject`, on this job's threads."""
        from pipelines.serving.answering.inference import load_predictor

        if subject.folder not in self._predictors:
            self._predictors[subject.folder] = load_predictor(subject.folder, self.threads)
        return self._predictors[subject.folder]

    def probabilities(self, subject: Subject) -> NDArray[np.float32]:
        """float32 [N, C] on the test texts, columns in the order of `labels`; computed once.

        Raises DataError when the model was trained for other classes.
        """
        if subject.folder not in self._probabilities:
            predictor = self.predictor(subject)
            if sorted(predictor.labels) != sorted(self.labels):
                raise DataError(
                    f"{subject.stage}@{subject.seed} knows the classes {', '.join(predictor.labels)}; "
                    f"the other models know {', '.join(self.labels)}: judge them in separate stages"
                )
            columns = [predictor.labels.index(label) for label in self.labels]
            self._probabilities[subject.folder] = predictor.predict(self.test.texts)[:, columns]
        return self._probabilities[subject.folder]

    def predictions(self, subject: Subject) -> NDArray[np.int64]:
        """int64 [N]: the most probable class of each test text, as an index into `labels`."""
        result: NDArray[np.int64] = self.probabilities(subject).argmax(axis=1)
        return result

    def stage_predictions(self, stage: str) -> NDArray[np.int64]:
        """int64 [S, N]: the predictions of every seed of `stage`."""
        import numpy as np

        return np.stack([self.predictions(subject) for subject in self.subjects[stage]])

    def _split(self, name: str) -> Split:
        rows = self.examples(name)
        return Split([row["text"] for row in rows], [str(row["label"]) for row in rows])

    def examples(self, name: str) -> list[Row]:
        """The rows of a labelled table. Raises DataError when there is none, or when it is empty."""
        from pyarrow import parquet

        if name not in self._tables:
            raise DataError(
                f"the evaluate stage needs the table {name!r}; it was given {', '.join(sorted(self._tables))}"
            )
        rows: list[Row] = parquet.read_table(self._tables[name]).to_pylist()
        if not rows:
            raise DataError(f"{self._tables[name]}: empty, there is nothing to judge on")
        return rows

    @cached_property
    def rows(self) -> list[Row]:
        """The test examples."""
        return self.examples("test")

    @cached_property
    def clean(self) -> NDArray[np.bool_] | None:
        """bool [N]: which test examples overlap nothing else of their published set; None when that is all of them."""
        import numpy as np

        from pipelines.corpora.leaks.leaked_rows import leaked_rows

        found = leaked_rows(self._tables["test"])
        return None if not found else ~np.isin(np.arange(len(self.rows)), found)

    @cached_property
    def gold(self) -> list[Answer]:
        """The right answer to each test example."""
        return [self.family.gold(row) for row in self.rows]

    def answers(self, subject: Subject) -> list[Answer]:
        """What `subject` answers to each test example; computed once."""
        if subject.folder not in self._answers:
            if self.has_class_probabilities(subject):
                self._answers[subject.folder] = [self.labels[choice] for choice in self.predictions(subject)]
            else:
                self._answers[subject.folder] = self.answers_to(subject, self.rows)
        return self._answers[subject.folder]

    def answers_to(self, subject: Subject, rows: Sequence[Row]) -> list[Answer]:
        """What `subject` answers to any examples of the family."""
        from pipelines.serving.answering.answerer import Answerer

        if self.has_class_probabilities(subject):
            predictor = self.predictor(subject)
            chosen = predictor.predict([str(row["text"]) for row in rows]).argmax(axis=1)
            return [predictor.labels[index] for index in chosen]
        if subject.folder not in self._answerers:
            self._answerers[subject.folder] = Answerer(subject.folder, self.threads)
        return self._answerers[subject.folder].answer(rows)

    def statistics(self, subject: Subject) -> NDArray[np.float64]:
        """[N, K]: the family's statistics of those answers; computed once."""
        if subject.folder not in self._statistics:
            self._statistics[subject.folder] = self.family.statistics(self.gold, self.answers(subject), self.labels)
        return self._statistics[subject.folder]


def evaluate(job: EvaluateJob) -> Result:
    """Run the suite of `job.stage` and write its record and the predictions into `job.out`.

    Raises RecipeError when an evaluation names a stage that is not judged, DataError when a table or a model cannot be
    used; both before anything is written.
    """
    evaluated = EvaluationContext(job)
    for evaluation in job.stage.suite:
        for stage in evaluation.subjects:
            if stage not in evaluated.subjects:
                raise RecipeError(
                    f"stage {job.stage_name!r}: {evaluation.name} names {stage!r}, which is not among the stages "
                    f"judged (start).{did_you_mean(stage, evaluated.subjects)}"
                )
    headline: dict[str, float] = {}
    sections: dict[str, dict[str, Any]] = {}
    for evaluation in job.stage.suite:
        record = evaluation.measure(evaluated)
        headline |= record.get("headline", {})
        sections[evaluation.name] = record
    document = {"dataset": _counts(evaluated), "sections": sections}
    job.out.mkdir(parents=True, exist_ok=True)
    _write_predictions(evaluated, job.out / PREDICTIONS)
    write_whole(job.out / EVALUATION, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return Result(metrics=headline)


def _counts(evaluated: EvaluationContext) -> dict[str, Any]:
    tables = {name: evaluated.examples(name) for name in ("train", "validation", "test")}
    counts: dict[str, Any] = {
        "language": evaluated.language,
        "family": evaluated.family.name,
        "labels": evaluated.labels,
        "texts": {name: len(rows) for name, rows in tables.items()},
        "per_label": {},
    }
    if evaluated.family.is_single_text:
        counted = {name: Counter(str(row["label"]) for row in rows) for name, rows in tables.items()}
        counts["per_label"] = {
            name: {label: labels[label] for label in evaluated.labels} for name, labels in counted.items()
        }
    return counts


def _write_predictions(evaluated: EvaluationContext, path: Path) -> None:
    """One row a test example and model; answers that are no text are JSON, probabilities are those of a text's classes."""
    import pyarrow
    from pyarrow import parquet

    columns: dict[str, list[Any]] = {
        name: [] for name in ("stage", "seed", "index", "label", "predicted", "probabilities")
    }
    for models in evaluated.answering.values():
        for subject in models:
            size = len(evaluated.rows)
            columns["stage"] += [subject.stage] * size
            columns["seed"] += [subject.seed] * size
            columns["index"] += range(size)
            columns["label"] += [_written(answer) for answer in evaluated.gold]
            if evaluated.has_class_probabilities(subject):
                columns["predicted"] += [evaluated.labels[choice] for choice in evaluated.predictions(subject)]
                columns["probabilities"] += evaluated.probabilities(subject).round(PROBABILITY_DIGITS).tolist()
            else:
                columns["predicted"] += [_written(answer) for answer in evaluated.answers(subject)]
                columns["probabilities"] += [None] * size
    schema = pyarrow.schema(
        [
            ("stage", pyarrow.string()),
            ("seed", pyarrow.int64()),
            ("index", pyarrow.int64()),
            ("label", pyarrow.string()),
            ("predicted", pyarrow.string()),
            ("probabilities", pyarrow.list_(pyarrow.float32())),
        ],
        # the columns of `probabilities`, in order
        metadata={"labels": json.dumps(evaluated.labels, ensure_ascii=False)},
    )
    with written_whole(path) as aside:
        parquet.write_table(pyarrow.table(columns, schema=schema), aside)


def _written(answer: Answer) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
