"""What evaluations read of a judging job: models, tables, and cached predictions."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.components import listed
from pipelines.corpora.shards.example_table import ExampleTable
from pipelines.errors import DataError, RecipeError
from pipelines.judging.evaluations.shared_encodings import SharedEncodings
from pipelines.judging.samples import key_of
from pipelines.judging.subjects import JudgingJob, Subject
from pipelines.lineage.results import SCRATCH
from pipelines.task_families.labelled_tables import MAIN, tables_of_task, tasks_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pipelines.serving.answering.answerer import Answerer
    from pipelines.serving.answering.inference import Predictor
    from pipelines.task_families import Answer, Row


@dataclass(frozen=True)
class Split:
    """A labelled table: texts and, in the same order, their classes."""

    texts: list[str]
    labels: list[str]

    def __len__(self) -> int:
        return len(self.texts)


class EvaluationContext:
    """What evaluations read: the judged models, the labelled tables, and the models' predictions, computed once."""

    def __init__(self, job: JudgingJob) -> None:
        self.language = job.language
        self.seed = job.seed
        self.threads = job.runtime.threads
        self.family = job.family
        self.subjects: dict[str, list[Subject]] = {}
        """Stage → its models, seeds ascending; stages in the order in which the recipe names them."""
        for subject in job.subjects:
            self.subjects.setdefault(subject.stage, []).append(_of_one_task(subject, job.out / SCRATCH))
        for models in self.subjects.values():
            models.sort(key=lambda subject: subject.seed)
        self.task_models = {stage: models for stage, models in self.subjects.items() if models[0].answers}
        """The stages among them that answer the dataset's task."""
        self.language_models = {stage: models for stage, models in self.subjects.items() if not models[0].answers}
        """The stages that were trained on plain text."""
        self.samples: dict[str, NDArray[np.float64]] = {}
        """Samples of figures by `samples.key_of`."""
        self.timings: dict[str, NDArray[np.float64]] = {}
        """The same of figures that a clock measures."""
        self.task = next(iter(tasks_in(job.tables)), MAIN)
        """The task on whose test table task models are judged."""
        self._tables = tables_of_task(job.tables, self.task)
        self._answers: dict[Path, list[Answer]] = {}
        self._statistics: dict[Path, NDArray[np.float64]] = {}
        self._predictors: dict[Path, Predictor] = {}
        self._answerers: dict[Path, Answerer] = {}
        self._probabilities: dict[Path, NDArray[np.float32]] = {}
        self._encodings = SharedEncodings()

    def keep(self, sample: str, subject: Subject, rows: NDArray[np.float64], *, timed: bool = False) -> None:
        """Keep the sample of a model [N, …] of which figures are scores; `timed` if a clock measured it."""
        (self.timings if timed else self.samples)[key_of(sample, subject.stage, subject.seed)] = rows

    def keep_baseline(self, sample: str, name: str, rows: NDArray[np.float64]) -> None:
        """Keep the sample [N, …] of a baseline without a network; `name` begins as `samples` says."""
        self.samples[key_of(sample, name, 0)] = rows

    @cached_property
    def train_labels(self) -> list[str]:
        """The class of each training text."""
        return [sys.intern(str(row["label"])) for row in self.examples("train")]

    @cached_property
    def validation(self) -> Split:
        return self._split("validation")

    @cached_property
    def test(self) -> Split:
        return self._split("test")

    @cached_property
    def labels(self) -> list[str]:
        """The classes: those of the models or, if no classifier is judged, those of the training table."""
        for models in self.task_models.values():
            if self.has_class_probabilities(models[0]):
                return self.predictor(models[0]).labels
        return self.family.labels(self.examples("train"))

    @cached_property
    def truth(self) -> NDArray[np.int64]:
        """Class of each test text as an index into `labels`, int64 [N]."""
        import numpy as np

        unknown = sorted(set(self.test.labels) - set(self.labels))
        if unknown:
            known = listed(self.labels)
            raise DataError(f"{self._tables['test']}: label {unknown[0]!r} is not one of the models' classes ({known})")
        index = {label: position for position, label in enumerate(self.labels)}
        return np.asarray([index[label] for label in self.test.labels], dtype=np.int64)

    def has_class_probabilities(self, subject: Subject) -> bool:
        """Whether `subject` gives each class of a text a probability."""
        from pipelines.serving.answering.inference import has_class_probabilities

        return self.family.is_single_text and has_class_probabilities(subject.folder)

    def predictor(self, subject: Subject) -> Predictor:
        """The served form of `subject`, on this job's threads."""
        from pipelines.serving.answering.inference import open_predictor

        if subject.folder not in self._predictors:
            self._predictors[subject.folder] = open_predictor(subject.folder, self.threads, self._encodings.open)
        return self._predictors[subject.folder]

    def probabilities(self, subject: Subject) -> NDArray[np.float32]:
        """Class probabilities of the test texts, float32 [N, C], columns in the order of `labels`; computed once.

        Raises DataError when the model was trained for other classes.
        """
        if subject.folder not in self._probabilities:
            predictor = self.predictor(subject)
            if sorted(predictor.labels) != sorted(self.labels):
                raise DataError(
                    f"{subject.stage}@{subject.seed} has the classes {listed(predictor.labels)}; "
                    f"the other models have {listed(self.labels)}: evaluate them in separate stages"
                )
            columns = [predictor.labels.index(label) for label in self.labels]
            self._probabilities[subject.folder] = predictor.predict(self.test.texts)[:, columns]
        return self._probabilities[subject.folder]

    def predictions(self, subject: Subject) -> NDArray[np.int64]:
        """Most probable class of each test text as an index into `labels`, int64 [N]."""
        result: NDArray[np.int64] = self.probabilities(subject).argmax(axis=1)
        return result

    def stage_predictions(self, stage: str) -> NDArray[np.int64]:
        """Predictions of every seed of `stage`, int64 [S, N]."""
        import numpy as np

        return np.stack([self.predictions(subject) for subject in self.subjects[stage]])

    def _split(self, name: str) -> Split:
        texts, labels = [], []
        for row in self.examples(name):
            texts.append(row["text"])
            labels.append(sys.intern(str(row["label"])))
        return Split(texts, labels)

    def examples(self, name: str) -> ExampleTable:
        """The rows of a labelled table, read as they are needed. Raises DataError if it is missing or empty."""
        if name not in self._tables:
            raise DataError(
                f"the evaluate stage needs the table {name!r}; its dataset has {', '.join(sorted(self._tables))}"
            )
        table = ExampleTable(self._tables[name])
        if not table:
            raise DataError(f"{self._tables[name]}: the table is empty; evaluation needs at least one example")
        return table

    @cached_property
    def rows(self) -> ExampleTable:
        """The test examples."""
        return self.examples("test")

    @cached_property
    def clean(self) -> NDArray[np.bool_] | None:
        """Mask [N] of the test examples that overlap nothing else of their published set, bool; None if all of them do
        not."""
        import numpy as np

        from pipelines.corpora.leaks.leaked_rows import leaked_rows

        leaked = leaked_rows(self._tables["test"])
        return None if not leaked else ~np.isin(np.arange(len(self.rows)), leaked)

    @cached_property
    def gold(self) -> list[Answer]:
        """The ground truth of each test example."""
        gold = [self.family.gold(row) for row in self.rows]
        return [sys.intern(right) if isinstance(right, str) else right for right in gold]

    def answers(self, subject: Subject) -> list[Answer]:
        """Answers of `subject` to the test examples; computed once."""
        if subject.folder not in self._answers:
            if self.has_class_probabilities(subject):
                self._answers[subject.folder] = [self.labels[choice] for choice in self.predictions(subject)]
            else:
                self._answers[subject.folder] = self.answers_to(subject, self.rows)
        return self._answers[subject.folder]

    def answers_to(self, subject: Subject, rows: Sequence[Row]) -> list[Answer]:
        """Answers of `subject` to any examples of the family."""
        from pipelines.serving.answering.answerer import Answerer

        if self.has_class_probabilities(subject):
            predictor = self.predictor(subject)
            chosen = predictor.predict([str(row["text"]) for row in rows]).argmax(axis=1)
            return [predictor.labels[index] for index in chosen]
        if subject.folder not in self._answerers:
            self._answerers[subject.folder] = Answerer(subject.folder, self.threads)
        return self._answerers[subject.folder].answer(rows)

    def statistics(self, subject: Subject) -> NDArray[np.float64]:
        """The family's statistics [N, K] of those answers; computed once."""
        if subject.folder not in self._statistics:
            self._statistics[subject.folder] = self.family.statistics(self.gold, self.answers(subject), self.labels)
        return self._statistics[subject.folder]


def _of_one_task(subject: Subject, scratch: Path) -> Subject:
    """`subject` with a folder that answers its task alone, which is written into `scratch` if its own answers several.

    Raises DataError where it does not answer the task.
    """
    from pipelines.models.extracting import extract_task, record_of_lines

    if not subject.answers or record_of_lines(subject.folder) is None:
        return subject
    out = scratch / "tasks" / f"{subject.fingerprint[:16]}-{subject.tasks[0]}"
    try:
        return subject.model_copy(update={"folder": extract_task(subject.folder, subject.tasks[0], out)})
    except RecipeError as error:
        raise DataError(f"{subject.stage}@{subject.seed}: {error}") from None
