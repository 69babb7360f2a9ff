"""A finished model of the store as the teacher of routes: itself and its lineage, as stages that are not computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pipelines.errors import CursusError, RecipeError
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.inheritance import BROUGHT
from pipelines.recipe.kinds import Kind
from pipelines.recipe.plan import Step
from pipelines.recipe.routes import COMPRESS, TEACHER, FinishedModel
from pipelines.recipe.schema import Stage
from pipelines.recipe.starts import HEAD_START
from pipelines.task_families import TaskFamily
from tasks.models.ancestry import ancestry, label

ROLES = ("start", "teacher", HEAD_START)
"""Roles of the parents that a stage names by one key each."""


def finished_model(store: Store, fingerprint: str) -> FinishedModel:
    """The model and its lineage. Raises CursusError where no route can start from it: it answers no task or several, it
    is itself compressed, or it reads the states of other models; RecipeError for a record that this version cannot
    read."""
    records = ancestry(store, fingerprint)
    model = records[fingerprint]
    title = f"{label(model)} {fingerprint[:8]}"
    if reason := _unfit(model, records):
        raise CursusError(f"{title} {reason}")
    names = _names(model, records)
    stages: dict[str, Mapping[str, Any]] = {}
    steps: dict[str, Step] = {}
    for one, name in names.items():
        record = records[one]
        stages[name] = _as_written(record, names, records)
        try:
            stage = Stage.model_validate(record.identity["stage"])
            family, families = _families(record)
        except (KeyError, ValidationError, RecipeError) as error:
            raise RecipeError(
                f"{title}: the record of its stage {label(record)} is of another version of cursus "
                f"({str(error).splitlines()[0]}); train the model again"
            ) from None
        steps[name] = Step(
            COMPRESS, name, record.seed, stage, False, record.parents, record.data, family, families, {}, None,
            record.identity, record.fingerprint,
        )  # fmt: skip
    return FinishedModel(fingerprint, stages, steps)


def _unfit(model: Provenance, records: Mapping[str, Provenance]) -> str | None:
    """Why no route starts from a model; None if one may."""
    if model.judges:
        return f"is an evaluation ({model.kind}), and no model; name one that answers a task"
    if Kind(model.kind).reads_plain_text:
        return f"was trained on plain text ({model.kind}) and answers no task; name a model that does"
    if model.identity["stage"].get("lines"):
        return "answers several tasks; routes compress a model of one: fine-tune one for the task first"
    made_of, compressed = _whole(model, records)
    if compressed:
        stage, names = compressed
        return (
            f"is itself compressed ({', '.join(names)} in stage {stage}); compress the model that it was made of: "
            f"{label(made_of)} {made_of.fingerprint[:8]}"
        )
    others = sorted(set(model.parents) - set(ROLES))
    if others:
        return f"reads other models ({', '.join(others)}), which a smaller one would still need; no route removes them"
    return None


def _whole(model: Provenance, records: Mapping[str, Provenance]) -> tuple[Provenance, tuple[str, list[str]] | None]:
    """The model that `model` was compressed from, through all compressions, and the stage of the latest one with the
    names of its compressions; `model` itself and None if nothing was compressed."""
    latest: tuple[str, list[str]] | None = None
    whole, record = model, model
    while True:
        compressed = record.identity["stage"].get("compression")
        start = records.get(record.parents.get("start", ""))
        if compressed:
            latest = latest or (label(record), [str(one["name"]) for one in compressed])
            whole = start or record
        if start is None:
            return whole, latest
        record = start


def uncompressed(store: Store, fingerprint: str) -> Provenance:
    """The model that a model was compressed from, through all compressions; itself if it is not compressed."""
    records = ancestry(store, fingerprint)
    return _whole(records[fingerprint], records)[0]


def _names(model: Provenance, records: Mapping[str, Provenance]) -> dict[str, str]:
    """Fingerprint → name of the stage, of the model and its ancestors by `ROLES`; parents first."""
    kept: set[str] = set()
    waiting = [model.fingerprint]
    while waiting:
        one = waiting.pop()
        kept.add(one)
        waiting += [parent for role, parent in records[one].parents.items() if role in ROLES and parent not in kept]
    names: dict[str, str] = {}
    for one, record in records.items():
        if one == model.fingerprint:
            names[one] = TEACHER
        elif one in kept:
            name = f"{TEACHER}.{record.stage}"
            names[one] = name if name not in names.values() else f"{name}.{one[:8]}"
    return names


def _as_written(record: Provenance, names: Mapping[str, str], records: Mapping[str, Provenance]) -> dict[str, Any]:
    """A recorded stage as a recipe would write it: with the names of its parents, which are no part of its identity,
    and without what it takes over from its start, which a stage that is `like` it does not take from another start."""
    stage: dict[str, Any] = dict(record.identity["stage"])
    parents = {role: names[parent] for role, parent in record.parents.items() if role in ROLES}
    if "start" in parents:
        before = records[record.parents["start"]].identity["stage"]
        stage = {key: value for key, value in stage.items() if key not in BROUGHT or value != before.get(key)}
        stage["start"] = {"untrained": parents["start"]} if record.identity.get("untrained") else parents["start"]
    elif record.checkpoint is not None:
        stage["start"] = record.checkpoint
    if HEAD_START in parents:
        stage["start"] = {"backbone": parents["start"], "head": parents[HEAD_START]}
    if "teacher" in parents:
        stage["teacher"] = parents["teacher"]
    return stage


def _families(record: Provenance) -> tuple[TaskFamily, dict[str, TaskFamily]]:
    """The family of a step's main task, and those of the named tasks that it reads."""
    family = record.identity.get("family")
    named = record.identity.get("families", {})
    return (
        TaskFamily.model_validate(family) if family else TaskFamily.default(),
        {name: TaskFamily.model_validate(one) for name, one in named.items()},
    )
