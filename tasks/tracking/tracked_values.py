"""Conversion of a step's metrics and tables to MLflow's metrics and dataset inputs.

lines       {"step": 20, "tokens": 4096, "train/loss": 5.1}      →  one point a number, on the axis of steps
tables      {"train": DataSource(digest, path)}                  →  a dataset input with rows, schema and context
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pipelines.lineage.provenance import DataSource, Provenance
from pipelines.task_families.labelled_tables import task_and_part

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Metric

    from pipelines.recipe.plan import Step

PARENT = "cursus.parent."
"""Beginning of the tags with the fingerprints of a step's parents."""
LONGEST_KEY = 250
LONGEST_VALUE = 6000
LONGEST_DIGEST = 36
CONTEXTS = {"validation": "validation", "test": "test"}
"""Table to its use, if that is not training."""
COLUMN_TYPES = {"int32": "integer", "int64": "long", "float": "float", "double": "double", "bool": "boolean"}
"""Type names of Arrow to those of MLflow; every other type is shown as a string."""


@dataclass(frozen=True)
class TrackedStep:
    """What is known of a step before it runs."""

    fingerprint: str
    recipe: str
    stage: str
    kind: str
    seed: int
    settings: Mapping[str, Any]
    """The stage, fully resolved, as JSON."""
    parents: Mapping[str, str]
    """Role to fingerprint."""
    data: Mapping[str, DataSource]
    name: str
    """`general`, or `classify@1` where a stage has one model a seed."""

    @classmethod
    def planned(cls, step: Step) -> Self:
        """A step that is about to run."""
        return cls(
            fingerprint=step.fingerprint,
            recipe=step.recipe,
            stage=step.name,
            kind=step.stage.kind.value,
            seed=step.seed,
            settings=_settings(step.identity),
            parents=step.parents,
            data=step.data,
            name=step.label,
        )

    @classmethod
    def of(cls, provenance: Provenance, name: str | None = None) -> Self:
        """The step that a finished artifact came from.

        A record does not hold whether its stage had other seeds: without `name`, fine-tuned models are named with their
        seed.
        """
        several = provenance.kind == "finetune" or provenance.seed > 0
        return cls(
            fingerprint=provenance.fingerprint,
            recipe=provenance.recipe,
            stage=provenance.stage,
            kind=provenance.kind,
            seed=provenance.seed,
            settings=_settings(provenance.identity),
            parents=provenance.parents,
            data=provenance.data,
            name=name or (f"{provenance.stage}@{provenance.seed}" if several else provenance.stage),
        )

    @property
    def dataset(self) -> str | None:
        """The prepared dataset that the step read, from the path of its tables: `data/prepared/<dataset>/general`."""
        return next((source.dataset for source in self.data.values()), None)

    def tags(self) -> dict[str, str]:
        """The tags that identify the step of a run or a model."""
        parents = {f"{PARENT}{key(role)}": fingerprint for role, fingerprint in self.parents.items()}
        return {
            "cursus.fingerprint": self.fingerprint,
            "cursus.recipe": self.recipe,
            "cursus.stage": self.stage,
            "cursus.kind": self.kind,
            "cursus.seed": str(self.seed),
            **parents,
        }


def _settings(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a step, out of everything that its identity covers."""
    return {**identity.get("stage", {}), "seed": identity.get("seed"), "untrained": identity.get("untrained")}


def key(name: str) -> str:
    """`name` as an MLflow key: forbidden characters replaced, cut to the longest that MLflow accepts."""
    return re.sub(r"[^\w\-. /:]", ".", name)[:LONGEST_KEY]


def points(lines: Iterable[Mapping[str, Any]], begun: int, ended: int) -> list[Metric]:
    """One point for every number in the lines of `metrics.jsonl`, tokens included, so that curves can be drawn over
    them.

    The lines have no time stamps: they are spread evenly from `begun` to `ended`, in milliseconds since the epoch.
    """
    from mlflow.entities import Metric

    lines = list(lines)
    interval = (ended - begun) / max(1, len(lines))
    return [
        Metric(key(name), float(value), round(begun + interval * (position + 1)), int(line.get("step", 0)))
        for position, line in enumerate(lines)
        for name, value in line.items()
        if name != "step" and _is_number(value)
    ]


def final_numbers(provenance: Provenance) -> dict[str, float]:
    """The figures by which finished steps are compared: metrics, size and cost."""
    numbers = dict(_numbers("", provenance.result.get("metrics", {})))
    for name in ("tokens", "steps", "parameters"):
        value = provenance.result.get(name)
        if _is_number(value) and value:
            numbers[f"final/{name}"] = float(value)
    return {**numbers, "final/seconds": provenance.environment.seconds}


def _numbers(prefix: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _numbers(f"{prefix}/{name}" if prefix else str(name), inner)
    elif _is_number(value):
        yield key(prefix), float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def dataset_inputs(root: Path, data: Mapping[str, DataSource]) -> list[DatasetInput]:
    """The tables as MLflow datasets, identified by their DVC digests.

    Rows and columns come from the Parquet footer of a table that still exists; nothing else of it is read.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    inputs = []
    for table, source in data.items():
        schema, rows = _footer(root / source.path)
        dataset = Dataset(
            name=f"{source.dataset}/{table}",
            digest=source.digest[:LONGEST_DIGEST],
            source_type="local",
            source=json.dumps({"uri": source.path}),
            schema=schema,
            profile=None if rows is None else json.dumps({"num_rows": rows}),
        )
        context = CONTEXTS.get((task_and_part(table) or ("", table))[1], "training")
        inputs.append(DatasetInput(dataset, tags=[InputTag("mlflow.data.context", context)]))
    return inputs


def table_rows(path: Path) -> int | None:
    """The number of rows of a table; None when it no longer exists."""
    return _footer(path)[1]


def _footer(path: Path) -> tuple[str | None, int | None]:
    """Schema as MLflow writes it, and the number of rows of a table; None when the table no longer exists."""
    if not path.exists():
        return None, None
    import pyarrow.dataset

    table = pyarrow.dataset.dataset(path, format="parquet")
    columns = [
        {"type": COLUMN_TYPES.get(str(field.type), "string"), "name": field.name, "required": not field.nullable}
        for field in table.schema
    ]
    return json.dumps({"mlflow_colspec": columns}), table.count_rows()
