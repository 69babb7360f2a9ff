"""`cursus run`: a recipe on a dataset, from raw text to a registered, evaluated model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.cli.display import (
    compared_seeds,
    show_detectable_difference,
    show_next,
    show_plan,
    show_scores,
    show_warning,
)
from flows.cli.exit_status import handle_errors
from flows.cli.finished import finished_report
from flows.cli.options import Dataset, Variants, recipe_names
from flows.cli.store_in_use import hold
from pipelines.errors import CursusError
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

console = Console(highlight=False)
Smoke = Annotated[bool, typer.Option("--smoke", help="Tiny sizes and budgets: only tests that everything runs.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Processor cores for training; all when not given.")]


@handle_errors
def run(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="A recipe (cursus recipes); the dataset's own when not given.", autocompletion=recipe_names
        ),
    ] = None,
    dataset: Dataset = None,
    variant: Variants = None,
    smoke: Smoke = False,
    until: Annotated[str | None, typer.Option(help="Stop after this stage.")] = None,
    threads: Threads = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan: steps, fingerprints, which are cached, estimated times.")
    ] = False,
) -> None:
    """Train a recipe through all its stages. Steps that are in the store are not computed again.

    Example: cursus run --data reviews --variant hour
    """
    root = project_root()
    # this command reports errors itself
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    prepare_environment(root)
    from flows.cli.preview import Previewer
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import load_recipe, resolve_request, store_folder

    request = resolve_request(root, dataset, recipe, tuple(variant or ()), smoke)
    loaded = load_recipe(root, request)
    if until is not None and until not in loaded.stages:
        raise CursusError(f"recipe {loaded.name} has no stage {until!r}; it has {', '.join(loaded.stages)}")
    store = Store(store_folder(root))
    hold(store)
    typer.echo(f"{loaded.name} on {request.dataset}: preparing the data", err=True)
    previewer = Previewer(root, request, store, lambda line: typer.echo(line, err=True), until)
    preview = previewer.before(only=dry_run)
    todo = preview.todo
    if (dry_run or todo) and (seeds := compared_seeds(preview.plan)) is not None:
        show_detectable_difference(console, preview.prepared, seeds)
    if dry_run:
        show_plan(console, root, preview.plan, preview.prepared, preview.stored, store, threads)
        return
    models: dict[str, str] = {}
    report = None if todo else finished_report(root, store, preview.plan, smoke=smoke)
    if report is None:
        typer.echo(
            f"{len(todo)} of {len(preview.plan.steps)} steps to compute; starting Prefect, MLflow and torch …", err=True
        )
        from flows.process.execute import execute

        result = execute(
            {
                "dataset": request.dataset,
                "recipe": request.recipe,
                "variants": request.variants,
                "smoke": smoke,
                "threads": threads,
                "until": until,
            },
            root,
        )
        report = Path(result["report"]) if result["report"] else None
        models = result["models"]
        preview = previewer.after(preview)
        for model, version in models.items():
            console.print(f"registered [bold]{model}[/bold] version {version}")
        show_warning(console, store, preview.plan, models)
    else:
        console.print(f"everything is in the store: {len(preview.plan.steps)} steps cached, nothing to compute")
    show_scores(console, store, preview.plan)
    if report is not None:
        console.print(f"report   {report}", soft_wrap=True)
    if smoke:
        console.print("smoke    no model is registered, and no command uses these by default", soft_wrap=True)
        return
    show_next(console, preview.plan, models)
