"""The model of a dataset, where a command names none: the champion, or else the final model of its latest run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.components import did_you_mean
from pipelines.errors import CursusError, StoreError
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.messages.translation import message
from pipelines.recipe.final_models import LineageStep, final_model
from pipelines.reports.score_tables import EXECUTION, is_smoke
from tasks.decisions.journal import PromotionJournal

CHAMPION = "champion"


@dataclass(frozen=True)
class ChosenModel:
    """An artifact, and the reason for it, for a person to read."""

    fingerprint: str
    why: str


def executions(root: Path) -> list[dict[str, Any]]:
    """The records of all executions that count, the latest first: smoke runs do not."""
    every = [json.loads(path.read_bytes()) for path in (root / "reports").glob(f"*/{EXECUTION}")]
    return sorted((one for one in every if not is_smoke(one)), key=lambda one: str(one["started"]), reverse=True)


def default_model(root: Path, store: Store, dataset: str | None = None) -> ChosenModel:
    """The champion of `dataset`, or else the final model of its latest run; `dataset` None means that of the latest run
    of all.

    Reads the promotion journal and the records of executions, not MLflow. Raises CursusError where there is no such
    model.
    """
    candidate = latest_model(root, dataset)
    name = dataset or str(candidate.execution["dataset"])
    model = champion_of(store, name)
    if model is not None:
        return model
    why = message("{stage} of the latest run on {dataset}; no model is champion", stage=candidate.stage, dataset=name)
    return ChosenModel(candidate.fingerprint, why)


@dataclass(frozen=True)
class LatestModel:
    """The final model of an execution."""

    fingerprint: str
    stage: str
    execution: Mapping[str, Any]


def latest_model(root: Path, dataset: str | None = None) -> LatestModel:
    """The final model of the latest execution, on `dataset` if it is given, that has one; measurements of claims and
    lattices have none. Raises CursusError when there is none."""
    known = executions(root)
    for execution in known:
        if not execution.get("measurement") and dataset in (None, execution["dataset"]):
            final = final_model([LineageStep.read(step) for step in execution["steps"]])
            if final is not None:
                return LatestModel(final.fingerprint, final.stage, execution)
    others = sorted({str(one["dataset"]) for one in known} - {dataset})
    where = f" on the dataset {dataset!r}" if dataset else ""
    hint = did_you_mean(dataset, others) if dataset and others else ""
    raise CursusError(
        f"no run{where} has made a model that answers a task.{hint} Start one with `cursus run"
        f"{f' --data {dataset}' if dataset else ''}` (smoke runs do not count), or name a model"
    )


def champion_of(store: Store, dataset: str) -> ChosenModel | None:
    """The champion among the models of `dataset` that was chosen last; None where there is none."""
    journal = PromotionJournal(store)
    if not journal.path.exists():
        return None
    names = [decision.model for decision in journal.decisions() if decision.alias == CHAMPION]
    for name in dict.fromkeys(reversed(names)):
        fingerprint = journal.alias_state(name, CHAMPION).champion
        if fingerprint is None:
            continue
        try:
            record = Provenance.read(store.folder(fingerprint))
        except StoreError:
            continue  # removed from the store since
        if any(source.dataset == dataset for source in record.data.values()):
            return ChosenModel(fingerprint, f"{name}@{CHAMPION}, {record.stage}")
    return None
