"""The flow that reproduces a model's lineage in an empty store and compares it, stage by stage, with its records."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from prefect import flow
from prefect.runtime import flow_run
from pydantic import BaseModel, ConfigDict, Field

from flows.process.computing import compute
from flows.process.outcome import record_outcome
from flows.process.run_name import model_name
from pipelines.errors import ReproductionError
from pipelines.lineage.store import Store
from pipelines.recipe.plan import Plan
from pipelines.recipe.schema import Recipe
from tasks.datasets.lock import shared_data_lock
from tasks.datasets.planning import store_folder
from tasks.display.artifacts import ARTIFACTS
from tasks.display.progress import TerminalProgress
from tasks.environment import project_root, state_folder
from tasks.launchers.settings import TrainingSettings, load_training
from tasks.models.ancestry import resolve
from tasks.models.default import default_model
from tasks.reproduction.record import Reproduction, reproduction_folder
from tasks.reproduction.reproduce import Remake, compare, datasets, generations, rebuild, together, warnings
from tasks.servers.environment import prepare_environment
from tasks.servers.flow_runs import recorded, report_ended_runs
from tasks.stages.steps import Context
from tasks.tracking.executions import Tracker

AS_RECORDED = ("devices", "nodes", "distribution", "device_tokens")
"""Settings of a job's runtime that are taken from its record; the launcher and the kind of device are today's."""


class ReproduceConfig(BaseModel):
    """The model to reproduce."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(
        None,
        description="A registered model, a fingerprint or its first digits, or a stage; the champion of the latest "
        "run's dataset, or else the latest model, when empty.",
    )
    into: Path | None = Field(None, description="An empty folder to reproduce it in; one inside the store when empty.")


def _run_name() -> str:
    config = ReproduceConfig.model_validate(flow_run.parameters.get("config") or {})
    return f"reproduction of {model_name(partial(_requested, config), config.model)}"


def _requested(config: ReproduceConfig, root: Path, store: Store) -> str:
    chosen = default_model(root, store).fingerprint if config.model is None else config.model
    return resolve(root, store, chosen)[1]


@flow(name="reproduce", flow_run_name=_run_name, validate_parameters=True)
# Prefect shows the defaults in its form
def reproduce(config: ReproduceConfig = ReproduceConfig()) -> Reproduction:  # noqa: B008
    """Reproduce a model from its records alone, and compare digests stage by stage until one differs.

    Raises ReproductionError with the first stage that differs and why; DataError, RecipeError or StoreError, before
    anything is computed, for a lineage that cannot be reproduced here.
    """
    root = project_root()
    prepare_environment(root)
    report_ended_runs(root)

    def carry_out() -> Reproduction:
        with recorded(root):
            return _carry_out(config, root)

    return record_outcome(carry_out)


def _carry_out(config: ReproduceConfig, root: Path) -> Reproduction:
    store = Store(store_folder(root))
    chosen = default_model(root, store).fingerprint if config.model is None else config.model
    title, fingerprint = resolve(root, store, chosen)
    training = load_training(root)
    target = Store(reproduction_folder(store, fingerprint, config.into))
    with ExitStack() as opened:
        progress = opened.enter_context(TerminalProgress())
        opened.enter_context(store.shared(progress.print_line))
        opened.enter_context(target.exclusive(progress.print_line))
        for dataset in datasets(store, fingerprint):
            opened.enter_context(shared_data_lock(dataset, root, progress.print_line))
        remakes = rebuild(root, store, fingerprint)
        result = Reproduction(
            model=f"{title}{remakes[-1].comparison.stage}",
            fingerprint=fingerprint,
            folder=target.root,
            warnings=warnings(remakes, root),
            stages=[remake.comparison for remake in remakes],
        )
        result.write()
        claims = opened.enter_context(ExitStack())  # released after the launcher below has ended its processes
        for warning in result.warnings:
            progress.print_line(f"known difference: {warning}")
        log = state_folder(root) / "logs" / f"reproduce-{datetime.now(UTC):%Y%m%d-%H%M%S}.log"
        context = Context(
            root=root,
            store=target,
            tracker=Tracker(
                root
            ),  # no execution is started in MLflow: these artifacts are only a check, and are deleted
            language="",
            launcher=opened.enter_context(training.launcher.open(root, log)),
            training=training,
            progress=progress,
        )
        for generation in generations(remakes):
            for group in together(generation):
                _make(group, context, claims)
            for remake in generation:
                fingerprint_here = remake.step.fingerprint
                seconds = context.seconds.get(fingerprint_here)
                result.put(compare(remake, context.artifacts.get(fingerprint_here), store, seconds))
            result.write()
            if result.first is not None:
                break
    result.keep(store)
    _show(result)
    if result.first is not None:
        raise ReproductionError(f"{result.sentence} The reproduced artifacts are in {target.root}.")
    if target.root.is_relative_to(store.root.resolve()):
        shutil.rmtree(target.root)
    return result


def _make(group: Sequence[Remake], context: Context, claims: ExitStack) -> None:
    """Compute steps of the same tables and runtime, with the recorded number of ranks and threads."""
    first = group[0]
    steps = tuple(remake.step for remake in group)
    recipe = Recipe(name=first.record.recipe, stages={step.name: step.stage for step in steps})
    recorded = {key: first.runtime[key] for key in AS_RECORDED if key in first.runtime}
    training = TrainingSettings.model_validate({"launcher": context.training.launcher, **recorded})
    here = replace(context, language=first.language, training=training)
    compute(Plan(recipe, steps), here, first.threads * training.devices * len(steps), claims)


def _show(result: Reproduction) -> None:
    rows = [
        {"stage": one.stage, "recorded": one.fingerprint[:12], "outcome": one.outcome, "why": "; ".join(one.reasons)}
        for one in result.stages
    ]
    ARTIFACTS.table("reproduction", rows, result.sentence)
    ARTIFACTS.flush()
