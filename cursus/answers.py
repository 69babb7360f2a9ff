"""`cursus.load`: a finished model that predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cursus.project import Root, prepared_root
from pipelines.errors import DataError
from pipelines.serving.answering.answering_model import AnsweringModel, Prediction
from pipelines.serving.answering.checked_examples import checked_example


class Model:
    """A finished model of one task, opened once. `cursus.load` makes one."""

    def __init__(self, title: str, folder: Path, fingerprint: str | None, task: str | None, threads: int) -> None:
        from pipelines.models.extracting import extract_task

        self.title, self.folder, self.fingerprint = title, folder, fingerprint
        with TemporaryDirectory(prefix="cursus-task-") as scratch:  # an opened model needs its files no more
            self._model = AnsweringModel(extract_task(folder, task, Path(scratch)), threads)

    def __repr__(self) -> str:
        return f"<cursus.Model {self.title}: {self.task}>"

    @property
    def task(self) -> str:
        """Name of its task family, such as `text_classification`."""
        return self._model.family.name

    @property
    def labels(self) -> tuple[str, ...]:
        """The closed set of answers or tags; empty when answers are free text, numbers or spans."""
        return self._model.labels

    @property
    def columns(self) -> dict[str, str]:
        """Column of an example → its type."""
        return self._model.columns

    def predict(self, examples: Sequence[str | Mapping[str, Any]]) -> list[Prediction]:
        """The prediction for each of `examples`, in their order.

        An example is a mapping with the model's `columns`, or a text where that is all that its task reads. Raises
        DataError, with the number of the example and the column, for one that the model cannot read.
        """
        if isinstance(examples, str):
            raise DataError("expected a list of examples, got one text; write predict([text])")
        one: Any = examples
        if isinstance(one, Mapping):  # whose keys would be answered as if they were texts
            raise DataError("expected a list of examples, got one example; write predict([example])")
        family = self._model.family
        rows = []
        for number, example in enumerate(examples, 1):
            given: Any = {"text": example} if isinstance(example, str) and family.is_single_text else example
            rows.append(checked_example(family, given, f"example {number}"))
        return self._model.predict(rows)


def load(
    reference: str | Path | None = None,
    *,
    dataset: str | None = None,
    task: str | None = None,
    threads: int = 1,
    root: Root = None,
) -> Model:
    """The model that `reference` names, opened for prediction on `threads` CPU threads.

    A reference is a dataset or a registered model with an alias (`reviews@champion`), a stage of the latest run, a
    fingerprint or its first digits, or a model folder, which is checked first and never unpickled. Without one it is
    the champion of `dataset` (default: that of the latest run), or else its latest model. `task` chooses one of the
    tasks of a model of several. Raises CursusError for a reference that names nothing, or a model that answers no task.
    """
    folder = prepared_root(root)
    from tasks.models.reference import named_model

    named = named_model(folder, None if reference is None else str(reference), dataset)
    return Model(named.title, named.folder, named.fingerprint, task, threads)
