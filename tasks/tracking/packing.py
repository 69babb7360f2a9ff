"""A model folder in the form that MLflow serves: the folder, the code of `pipelines` and own parts, and no pickle.

serving.py            a classifier of texts    {"inputs": ["a text"]}
serving_answers.py    any other task           {"dataframe_records": [{column: …}]}
serving_tasks.py      several tasks            {"dataframe_records": […], "params": {"task": "similarity"}}
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pipelines.components.own_parts import own_roots
from pipelines.models.extracting import answering_lines, answers_several, extract_task
from pipelines.serving.answering.examples import family_of, input_columns
from pipelines.serving.answering.inference import has_class_probabilities
from pipelines.task_families import TaskFamily

if TYPE_CHECKING:
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, TensorSpec

TASK = "task"
"""Parameter of a request to a model of several tasks."""
COLUMNS = {"string": "string", "double": "double", "int64": "long"}
"""Column type of pyarrow → data type of MLflow."""
REQUIRED = ("mlflow", "numpy", "pandas", "pydantic", "tokenizers", "transformers")
"""Packages that every served model requires, in addition to onnxruntime or torch."""


def is_text_classifier(folder: Path) -> bool:
    """Whether the model of one task in `folder` gives the classes of single texts probabilities."""
    return family_of(folder).is_single_text and has_class_probabilities(folder)


def save_packed(folder: Path, out: Path) -> None:
    """Save the model in `folder`, of a stage that answers a task, as `out`: a folder that MLflow serves."""
    with (
        warnings.catch_warnings(),
        TemporaryDirectory(dir=out.parent) as scratch,
    ):
        # MLflow warns about its own type hints on import, and about examples that its signatures reject
        warnings.filterwarnings("ignore", category=UserWarning, module="mlflow")
        import mlflow.pyfunc

        several = answers_several(folder)
        served = folder if several else extract_task(folder, None, Path(scratch) / "one")
        classifies = not several and is_text_classifier(served)
        if several:
            families = [line.family for line in answering_lines(folder).values() if line.family is not None]
            module, signature = "serving_tasks", _signature_of_several(families)
        elif classifies:
            module, signature = "serving", _signature({"text": "string"}, probabilities=True)
        else:
            module, signature = "serving_answers", _signature(input_columns(family_of(served)))
        mlflow.pyfunc.save_model(
            out,
            python_model=str(_source(f"{__package__}.{module}")),
            artifacts={"model": str(served)},
            code_paths=[str(_source("pipelines").parent), *map(str, own_roots())],
            pip_requirements=_requirements(served),
            signature=signature,
            # MLflow accepts no column of lists in an example
            input_example={"text": ["How to solve a linear system."]} if classifies else None,
        )


def _signature(inputs: Mapping[str, str], probabilities: bool = False) -> ModelSignature:
    """The columns `inputs` in; out the label and all `probabilities` of a classifier, else an answer of any form."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema
    from mlflow.types.schema import Map

    # a signature from a list type hint would reject data frames over HTTP; this one accepts both
    answer = Schema([ColSpec(DataType.string, "label"), ColSpec(Map(DataType.double), "probabilities")])
    columns = Schema([_column(name, kind) for name, kind in inputs.items()])
    return ModelSignature(inputs=columns, outputs=answer if probabilities else None)


def _signature_of_several(families: Iterable[TaskFamily]) -> ModelSignature:
    """The columns of every family, none of them required, and the parameter that names the task."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

    kinds: dict[str, set[str]] = {}
    for family in families:
        for name, kind in input_columns(family).items():
            kinds.setdefault(name, set()).add(kind)
    columns: list[ColSpec | TensorSpec] = [
        # columns of one name in two families may differ in type
        _column(name, next(iter(known)), required=False)
        if len(known) == 1
        else ColSpec(AnyType(), name, required=False)  # type: ignore[no-untyped-call]
        for name, known in kinds.items()
    ]
    return ModelSignature(inputs=Schema(columns), params=ParamSchema([ParamSpec(TASK, DataType.string, None)]))


def _column(name: str, kind: str, required: bool = True) -> ColSpec:
    from mlflow.types import ColSpec, DataType
    from mlflow.types.schema import Array

    inside = DataType[COLUMNS[kind.removeprefix("list<").removesuffix(">")]]
    return ColSpec(Array(inside) if kind.startswith("list<") else inside, name, required=required)


def _source(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin)


def _requirements(folder: Path) -> list[str]:
    engine = "onnxruntime" if (folder / "model.onnx").exists() else "torch"
    # a local build's suffix (+cpu) belongs to this machine, not to the model
    return [f"{name}=={importlib.metadata.version(name).split('+')[0]}" for name in (*REQUIRED, engine)]
