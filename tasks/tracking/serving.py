"""The registered classifier as MLflow serves it. MLflow copies this file into the model and runs it to load the model.

    {"inputs": ["How to solve a linear system."]}
    → {"predictions": [{"label": "linalg", "probabilities": {"cluster": 0.01, …, "linalg": 0.93}}]}

A data frame with a column `text` is accepted as well. Nothing is pickled: the model consists of this file, the copy of
`pipelines` that was registered with it, and the served folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel


class MLflowClassifier(PythonModel):
    """Texts in, a label and the probability of every label out."""

    def load_context(self, context: Any) -> None:
        """Load the served folder. MLflow requires the parameter to have this name."""
        from pipelines.serving.answering.inference import load_predictor

        threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
        self.predictor = load_predictor(Path(context.artifacts["model"]), threads)

    # MLflow inspects the parameters' names, and omits the context when none has its name
    def predict(self, model_input: pandas.DataFrame) -> list[dict[str, Any]]:  # type: ignore[override]
        """One prediction a row of the column `text`, in their order."""
        labels = self.predictor.labels
        rows = self.predictor.predict(model_input["text"].tolist())
        return [
            {
                "label": labels[int(row.argmax())],
                "probabilities": {label: round(float(value), 6) for label, value in zip(labels, row, strict=True)},
            }
            for row in rows
        ]


set_model(MLflowClassifier())
