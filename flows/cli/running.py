"""A request carried out, without a word about how it is shown: shared by `cursus run` and `cursus.run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flows.cli.finished import finished_report
from flows.cli.preview import PlanPreview, Previewer
from pipelines.lineage.store import Store
from pipelines.messages.translation import message
from tasks.datasets.looking import look_at_new_sources
from tasks.datasets.planning import check_stage, load_recipe, resolve_request


@dataclass(frozen=True)
class RunOutcome:
    """A completed request: its plan on the data as they are now, its report, and the models that it registered."""

    preview: PlanPreview
    report: Path | None
    computed: tuple[str, ...] = ()
    """Labels of the steps that were computed."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Registered model → version."""


def requested(
    root: Path,
    store: Store,
    recipe: str | None,
    dataset: str | None,
    variants: Sequence[str],
    smoke: bool,
    until: str | None,
    notify: Callable[[str], None],
) -> Previewer:
    """The planner of a request. Raises CursusError for an unknown dataset, recipe, variant or stage."""
    # errors are reported by the caller
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    request = resolve_request(root, dataset, recipe, tuple(variants), smoke)
    look_at_new_sources(request.dataset, root)  # before the recipe: its parts take a second to import
    loaded = load_recipe(root, request)
    if until is not None:
        check_stage(loaded, until)
    notify(message("{recipe} on {dataset}: preparing the data", recipe=loaded.name, dataset=request.dataset))
    return Previewer(root, request, store, notify, until)


def complete(previewer: Previewer, preview: PlanPreview, threads: int | None) -> RunOutcome:
    """Compute what is missing of `preview`, and write its report, unless an earlier run has done both."""
    request, root, todo = previewer.request, previewer.root, preview.todo
    report = None if todo else finished_report(root, previewer.store, preview.plan, smoke=request.smoke)
    if report is not None:
        return RunOutcome(preview, report)
    previewer.notify(
        message(
            "{todo} of {steps} steps to compute; starting Prefect, MLflow and torch …",
            todo=len(todo),
            steps=len(preview.plan.steps),
        )
    )
    from flows.process.execute import execute

    config = {
        "dataset": request.dataset,
        "recipe": request.recipe,
        "variants": request.variants,
        "smoke": request.smoke,
        "threads": threads,
    }
    until = previewer.until
    result = execute(config, root) if until is None else execute({**config, "stage": until}, root, "stage")
    return RunOutcome(
        previewer.after(preview),
        Path(result["report"]) if result["report"] else None,
        tuple(result["computed"]),
        result["models"],
    )
