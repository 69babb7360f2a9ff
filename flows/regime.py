"""The flow `regime`, the whole pipeline: data → general → domain → task-adaptive → fine-tune → compress → evaluate →
register."""

from __future__ import annotations

import time
import uuid
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from pathlib import Path

from prefect import flow
from prefect.runtime import flow_run
from pydantic import BaseModel, ConfigDict, Field

from flows.process.computing import begin, execution, whole
from flows.process.run_name import request_name
from pipelines.lineage import hardware
from pipelines.lineage.store import Store
from tasks.datasets.lock import data_in_use
from tasks.datasets.planning import Request, make_plan, resolve_request, store_folder
from tasks.datasets.preparation import prepare_dataset
from tasks.datasets.prepared import Prepared
from tasks.display.progress import TerminalProgress
from tasks.launchers.settings import load_training
from tasks.stages.finish import publish_report, register_models, show_scores


class RunConfig(BaseModel):
    """The recipe and the dataset. Everything else is in the recipe and in params.yaml."""

    model_config = ConfigDict(extra="forbid")

    dataset: str | None = Field(None, description="A dataset of params.yaml; its default when empty.")
    recipe: str | None = Field(None, description="A recipe of the folder recipes/; the dataset's own when empty.")
    variants: list[str] = Field([], description="Variants of the recipe, for example hour or minilm.")
    smoke: bool = Field(False, description="Tiny sizes and budgets: only tests that everything runs.")
    threads: int | None = Field(None, ge=1, description="Processor cores for training; all when empty.")

    def request(self, root: Path) -> Request:
        """The request, with the defaults of params.yaml. Raises RecipeError for an unknown dataset."""
        return resolve_request(root, self.dataset, self.recipe, tuple(self.variants), self.smoke)

    def name(self, until: str | None = None) -> str:
        """The name of the flow run."""
        return request_name(self.dataset, self.recipe, self.variants, smoke=self.smoke, until=until)


class RegimeResult(BaseModel):
    """The result of an execution."""

    execution: str
    computed: list[str]
    cached: list[str]
    report: Path | None
    models: dict[str, str]
    """Version of each registered model, by name."""


def _run_name() -> str:
    return RunConfig.model_validate(flow_run.parameters.get("config") or {}).name()


@flow(name="regime", flow_run_name=_run_name, validate_parameters=True)
# Prefect shows the defaults in its form
def regime(config: RunConfig = RunConfig()) -> RegimeResult:  # noqa: B008
    """General → domain → task-adaptive → fine-tune → compress → evaluate: raw text to a registered, evaluated model."""
    return begin(lambda root: carry_out(config.request(root), root, threads=config.threads))


def dataset_in_use(dataset: str, root: Path, progress: TerminalProgress) -> AbstractContextManager[Prepared]:
    """The dataset, brought up to date, which no other run changes until the block ends."""

    def make() -> Prepared:
        return prepare_dataset(dataset, root, lambda step: progress.print_line(f"  {step}"))

    return data_in_use(dataset, root, make, progress.print_line)


def carry_out(request: Request, root: Path, *, threads: int | None = None, until: str | None = None) -> RegimeResult:
    """Compute the missing steps of `request`, write the report, and, for a whole recipe, register the final models."""
    training = load_training(root)
    store = Store(store_folder(root))
    with ExitStack() as opened:
        progress = opened.enter_context(TerminalProgress())
        opened.enter_context(store.shared(progress.print_line))
        began, started = time.monotonic(), datetime.now(UTC)
        if request.judged_on is not None:
            opened.enter_context(dataset_in_use(request.judged_on, root, progress))
        prepared = opened.enter_context(dataset_in_use(request.dataset, root, progress))
        plan = make_plan(root, request, prepared)
        if until is not None:
            plan = plan.ancestors(until)
        identifier = f"{started:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"
        with execution(
            identifier,
            plan,
            prepared,
            root,
            store,
            training,
            progress,
            log="training",
            began=began,
            smoke=request.smoke,
            variants=request.variants,
        ) as under_way:
            under_way.compute(threads or hardware.cores())
            context = under_way.context
            # the models of a smoke run are none that anybody should be served
            entire = until is None and request.transform is None and not request.smoke
            models = register_models(whole(plan), prepared.name, whole(context)) if entire else {}
            show_scores(whole(plan), whole(context))
            # last: an execution with a report is complete
            report = publish_report(
                identifier,
                whole(plan),
                whole(prepared),
                started,
                under_way.seconds,
                whole(under_way.parameters),
                whole(context),
                measurement=request.transform is not None,
            )
    return RegimeResult(
        execution=identifier,
        computed=[step.label for step in plan.steps if step.fingerprint in context.seconds],
        cached=[step.label for step in plan.steps if step.fingerprint not in context.seconds],
        report=report,
        models=models,
    )
