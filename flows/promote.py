"""The flow `promote`: candidate and champion predict the same test examples, and the gate decides on promotion.

candidate, champion ─▶ evaluation step of each task (in the store) ─▶ criteria ─▶ GO            the alias moves
                                                                           ├─▶ NO-GO         it stays
                                                                           └─▶ INCONCLUSIVE  a person decides
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed
from pydantic import BaseModel, ConfigDict, Field

from flows.process.approval import await_decision
from flows.process.computing import begin, execution
from flows.process.run_name import model_name
from pipelines.errors import DataError, StageError
from pipelines.lineage import hardware
from pipelines.lineage.store import Artifact, Store
from pipelines.recipe.plan import Plan
from pipelines.recipe.schema import Recipe
from tasks.datasets.damage import damaged
from tasks.datasets.lock import shared_data_lock
from tasks.datasets.planning import store_folder
from tasks.datasets.prepared import Prepared, open_prepared
from tasks.decisions.record import Promotion
from tasks.display.artifacts import ARTIFACTS
from tasks.display.progress import TerminalProgress
from tasks.launchers.settings import load_training
from tasks.models.ancestry import resolve
from tasks.models.default import latest_model
from tasks.promotion.contest import Contest, check_predictions, judging, open_contest, refuse_other_items
from tasks.promotion.judgement import conclude, judge, new_id
from tasks.promotion.page import show, write_page
from tasks.promotion.settings import PromotionSettings


class PromoteConfig(BaseModel):
    """The candidate, the alias, and how the verdict is handled."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(
        None,
        description="A registered model, a stage, or a fingerprint's first digits; the final model of the dataset's "
        "latest run when empty.",
    )
    dataset: str | None = Field(
        None, description="The dataset whose latest run is meant where no model is named; that of all when empty."
    )
    to: str = Field("champion", description="The alias that moves to it.")
    alone: bool = Field(False, description="Judge it by itself, without comparing it with the current champion.")
    undecided: Literal["ask", "leave"] = Field(
        "ask", description="Whether an INCONCLUSIVE verdict waits for a person's decision, or is left open."
    )
    threads: int | None = Field(None, ge=1, description="Processor cores for the judging step; all when empty.")


class PromoteResult(BaseModel):
    """The result of a promotion."""

    sentence: str
    promotion: Promotion | None = None
    """None if the model was already the champion."""
    page: Path | None = None
    mlflow_pending: str | None = None
    """Why the decision is recorded in MLflow later; None if it was recorded."""


NAMES = {"promoted": "Promoted", "refused": "Refused", "left open": "Undecided"}
"""Name of the flow run's final state in the UI, by decision."""


def _run_name() -> str:
    config = PromoteConfig.model_validate(flow_run.parameters.get("config") or {})

    def candidate(root: Path, store: Store) -> str:
        if config.model is None:
            return latest_model(root, config.dataset).fingerprint
        return resolve(root, store, config.model)[1]

    return f"{model_name(candidate, config.model)} to {config.to}"


@flow(name="promote", flow_run_name=_run_name, validate_parameters=True)
# Prefect shows the defaults in its form
def promote(config: PromoteConfig = PromoteConfig()) -> State[PromoteResult]:  # noqa: B008
    """Judge a candidate against the champion on the same test examples: GO promotes it, NO-GO does not, and otherwise a
    person decides.

    Raises CursusError, before anything is computed, for models that cannot be compared; nothing is promoted then.
    """
    result = begin(lambda root: _carry_out(config, root))
    decision = result.promotion.decision if result.promotion else None
    return Completed(name=NAMES[decision.action] if decision else "Completed", message=result.sentence, data=result)


def _notify(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _carry_out(config: PromoteConfig, root: Path) -> PromoteResult:
    store = Store(store_folder(root))
    settings = PromotionSettings.load(root)
    with ExitStack() as opened:
        opened.enter_context(store.shared(_notify))
        contest = open_contest(root, store, config.model, config.to, not config.alone, config.dataset)
        if contest.alias_state.champion == contest.candidate.record.fingerprint:
            return PromoteResult(sentence=f"{contest.candidate.name} is already the {config.to} of {contest.model}.")
        dataset = contest.candidate.dataset
        opened.enter_context(shared_data_lock(dataset, root, _notify))
        prepared = open_prepared(dataset, root)
        if names := damaged(prepared):
            raise DataError(
                f"{prepared.folder / names[0]}: has changed since it was prepared; run `cursus data {dataset}`"
            )
        refuse_other_items(contest, prepared, store)
        judged = _judged(config, root, store, contest, prepared, settings)
    for task, artifact in judged.items():
        check_predictions(artifact.folder, prepared, contest, task)
    promotion = judge(root, store, contest, prepared, judged, settings, new_id())
    by, left = None, None
    if promotion.verdict == "INCONCLUSIVE" and config.undecided == "ask":
        page = write_page(root, store, promotion, prepared)
        show(promotion, page)
        ARTIFACTS.flush()
        by = await_decision(promotion, page, settings.wait_hours)
        left = f"no decision was made within {settings.wait_hours:g} hours" if by is None else None
    promotion, later = conclude(root, store, promotion, by, left)
    page = write_page(root, store, promotion, prepared)
    show(promotion, page)
    if left is not None:
        ARTIFACTS.flush()
        again = (
            f"`cursus promote {promotion.candidate.fingerprint[:12]}` requests a decision again without measuring again"
        )
        raise StageError(f"{left}, so nothing was promoted; {again} ({promotion.sentence})")
    assert promotion.decision is not None
    sentence = promotion.sentence
    if by is not None:
        sentence = f"{promotion.decision.action} by {by.name}: {by.reason} ({promotion.sentence})"
    return PromoteResult(sentence=sentence, promotion=promotion, page=page, mlflow_pending=later)


def _judged(
    config: PromoteConfig,
    root: Path,
    store: Store,
    contest: Contest,
    prepared: Prepared,
    settings: PromotionSettings,
) -> dict[str, Artifact]:
    """Task → the artifact of its evaluation step, computed if it is not in the store."""
    steps = judging(contest, prepared, settings, root)
    first, *_ = steps.values()
    recipe = Recipe(name=first.recipe, stages={step.name: step.stage for step in steps.values()})
    plan = Plan(recipe, tuple(steps.values()))
    training = load_training(root)
    identifier = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{first.fingerprint[:4]}"
    with (
        TerminalProgress() as progress,
        execution(
            identifier,
            plan,
            prepared,
            root,
            store,
            training,
            progress,
            log="promotion",
            smoke=False,
            began=time.monotonic(),
        ) as under_way,
    ):
        artifacts = under_way.context.artifacts
        for fingerprint in first.parents.values():
            parent = store.get(fingerprint)
            assert parent is not None, "its record has just been read"
            artifacts[fingerprint] = parent
        under_way.compute(config.threads or hardware.cores())
    return {task: artifacts[step.fingerprint] for task, step in steps.items()}
