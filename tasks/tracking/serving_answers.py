"""A registered model of any task family, as MLflow serves it. MLflow copies this file into the model and runs it.

    {"dataframe_records": [{"question": "Who wrote it?", "context": "Ada wrote it."}]}
    → {"predictions": [{"answer": "Ada"}]}

The columns are those of the family, without its answer. Nothing is pickled: the model consists of this file, the copy
of `pipelines` that was registered with it, and the served folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel


class MLflowTaskModel(PythonModel):
    """Examples in, answers out."""

    def load_context(self, context: Any) -> None:
        """Load the served folder. MLflow requires the parameter to have this name."""
        from pipelines.serving.answering.answerer import Answerer

        threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
        self.answerer = Answerer(Path(context.artifacts["model"]), threads)

    # MLflow inspects the parameters' names, and omits the context when none has its name
    def predict(self, model_input: pandas.DataFrame) -> list[dict[str, Any]]:  # type: ignore[override]
        """One answer a row, in their order."""
        from pipelines.serving.answering.examples import as_json, parse_example

        family = self.answerer.task.family
        numbered = enumerate(json_rows(model_input), 1)
        rows = [parse_example(family, row, f"row {number}") for number, row in numbered]
        return [{"answer": as_json(answer)} for answer in self.answerer.answer(rows)]


def json_rows(frame: pandas.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as JSON values: MLflow passes lists as NumPy arrays."""
    return [
        {str(name): value.tolist() if hasattr(value, "tolist") else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


set_model(MLflowTaskModel())
