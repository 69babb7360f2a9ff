"""A registered model of several tasks, as MLflow serves it. MLflow copies this file into the model and runs it.

    {"dataframe_records": [{"text_a": "…", "text_b": "…"}], "params": {"task": "similarity"}}
    → {"predictions": [{"answer": 3.1}]}

The columns are those of the task's family, without its answer. All heads are opened on one backbone, which is in memory
once. Nothing is pickled: the model consists of this file, the copy of `pipelines` that was registered with it, and the
folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel


class MLflowSeveralTasks(PythonModel):
    """Examples of one of its tasks in, answers out."""

    def load_context(self, context: Any) -> None:
        """Load the served folder. MLflow requires the parameter to have this name."""
        from pipelines.models.extracting import answering_lines
        from pipelines.models.opening import open_lines
        from pipelines.models.untrusted import refuse_unsafe
        from pipelines.serving.answering.answerer import Answerer

        threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
        self.folder = Path(context.artifacts["model"])
        refuse_unsafe(self.folder)
        opened = open_lines(self.folder, "cpu")
        self.answerers = {
            line: Answerer(self.folder, threads, task=line, opened=opened) for line in answering_lines(self.folder)
        }

    # MLflow inspects the parameters' names, and omits the context when none has its name
    def predict(  # type: ignore[override]
        self, model_input: pandas.DataFrame, params: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """One answer of `params["task"]` a row, in their order. DataError for an unknown task, or none."""
        from pipelines.errors import DataError
        from pipelines.serving.answering.examples import as_json, parse_example

        task = (params or {}).get("task")
        if task not in self.answerers:
            named = "no task is named" if task is None else f"{task!r} is none of its tasks"
            known = ", ".join(self.answerers)
            raise DataError(f'a model of several tasks ({known}), and {named}; pass "params": {{"task": …}}')
        answerer = self.answerers[task]
        family = answerer.task.family
        rows = [
            parse_example(family, json_row(row), f"row {number}")
            for number, row in enumerate(model_input.to_dict("records"), 1)
        ]
        return [{"answer": as_json(answer)} for answer in answerer.answer(rows)]


def json_row(row: dict[Any, Any]) -> dict[str, Any]:
    """A row of a frame as JSON values: MLflow passes lists as NumPy arrays."""
    return {str(name): value.tolist() if hasattr(value, "tolist") else value for name, value in row.items()}


set_model(MLflowSeveralTasks())
