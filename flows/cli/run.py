"""`cursus run`: a recipe on a dataset, from raw text to a registered, evaluated model."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from flows.cli.display import (
    compared_seeds,
    show_detectable_difference,
    show_left_out,
    show_next,
    show_plan,
    show_scores,
    show_warning,
)
from flows.cli.exit_status import handle_errors
from flows.cli.options import Dataset, Variants, recipe_names
from flows.cli.store_in_use import hold
from pipelines.messages.translation import localized_page, message
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
    prepare_environment(root)
    from flows.cli.running import complete, requested
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder

    store = Store(store_folder(root))
    previewer = requested(
        root, store, recipe, dataset, variant or (), smoke, until, lambda line: typer.echo(line, err=True)
    )
    hold(store)
    preview = previewer.before(only=dry_run)
    if (dry_run or preview.todo) and (seeds := compared_seeds(preview.plan)) is not None:
        show_detectable_difference(console, preview.prepared, seeds)
    if dry_run or preview.todo:
        show_left_out(console, preview.prepared)
    if dry_run:
        show_plan(console, root, preview.plan, preview.prepared, preview.stored, store, threads)
        return
    outcome = complete(previewer, preview, threads)
    plan = outcome.preview.plan
    if outcome.computed or outcome.models:
        for model, version in outcome.models.items():
            console.print(message("registered [bold]{model}[/bold] version {version}", model=model, version=version))
        show_warning(console, store, plan, outcome.models)
    else:
        console.print(
            message("everything is in the store: {steps} steps cached, nothing to compute", steps=len(plan.steps))
        )
    show_scores(console, store, plan)
    if outcome.report is not None:
        console.print(message("report   {path}", path=localized_page(outcome.report)), soft_wrap=True)
    if smoke:
        console.print(message("smoke    no model is registered, and no command uses these by default"), soft_wrap=True)
        return
    show_next(console, plan, outcome.models)
