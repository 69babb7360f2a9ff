"""What MLflow's run of an execution holds besides its metrics: parameters, and its dataset as an input."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pipelines.lineage.provenance import DataSource
from pipelines.safety.redaction import redacted
from tasks.tracking.recorder import Recorder
from tasks.tracking.tracked_values import LONGEST_VALUE, key, table_rows

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Run

PARENT_RUN = "mlflow.parentRunId"
DIGITS = 12
"""Digits of a dataset's digest: MLflow's UI shows all of them in a column."""


def describe_execution(
    recorder: Recorder, run_id: str, dataset: str, parameters: Mapping[str, str], data: Mapping[str, DataSource]
) -> None:
    """Log the parameters and the dataset of an execution. Idempotent; raises what MLflow raises."""
    from mlflow.entities import Param

    params = [Param(key(name), redacted(value)[:LONGEST_VALUE]) for name, value in parameters.items() if value]
    recorder.client.log_batch(run_id, params=params)
    if data:
        recorder.client.log_inputs(run_id, datasets=[dataset_input(recorder.root, dataset, data)])


def dataset_input(root: Path, dataset: str, data: Mapping[str, DataSource]) -> DatasetInput:
    """A prepared dataset as one MLflow input: its digest is that of all of its tables."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    digests = "\n".join(f"{name} {source.digest}" for name, source in sorted(data.items()))
    rows = {name: count for name, source in data.items() if (count := table_rows(root / source.path)) is not None}
    return DatasetInput(
        Dataset(
            name=dataset,
            digest=hashlib.sha256(digests.encode()).hexdigest()[:DIGITS],
            source_type="local",
            source=json.dumps({"uri": next(iter(data.values())).folder.as_posix()}),
            profile=json.dumps({"num_rows": sum(rows.values()), **rows}),
        ),
        tags=[InputTag("mlflow.data.context", "training, validation and test")],
    )


def comparison_page(recorder: Recorder, executions: Sequence[str]) -> str | None:
    """The page of MLflow's UI that compares the runs of `executions`, relative to the server's address; None where it
    has fewer than two of them. Raises what MLflow raises."""
    runs = [run for name in executions if (run := _run_of(recorder, name)) is not None]
    if len(runs) < 2:
        return None
    ids = json.dumps([run.info.run_id for run in runs])
    experiments = json.dumps(list(dict.fromkeys(run.info.experiment_id for run in runs)))
    return f"#/compare-runs?runs={quote(ids)}&experiments={quote(experiments)}"


def _run_of(recorder: Recorder, execution: str) -> Run | None:
    runs = recorder.client.search_runs(recorder.experiments(), f"tags.`cursus.execution` = '{execution}'")
    return next((run for run in runs if PARENT_RUN not in run.data.tags), None)
