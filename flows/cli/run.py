"""`cursus run`: a recipe on a dataset, from raw text to a registered, evaluated model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.cli.complete_run import record_complete_run, show_complete_run, show_end, show_nothing_to_compute
from flows.cli.display import (
    compared_seeds,
    next_commands,
    show_detectable_difference,
    show_left_out,
    show_plan,
    show_warning,
)
from flows.cli.exit_status import handle_errors
from flows.cli.options import Dataset, Variants, recipe_names
from flows.cli.store_in_use import hold
from pipelines.messages.translation import message
from tasks.environment import STORE, project_root
from tasks.records.complete_runs import RunArguments, record_of
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
    arguments = RunArguments(recipe, dataset, tuple(variant or ()), smoke, until)
    record = record_of(root, arguments)
    if not dry_run and show_complete_run(root, root / STORE, record, console, smoke=smoke):
        return
    _plan_and_run(root, arguments, record, threads, dry_run=dry_run)


def _plan_and_run(root: Path, arguments: RunArguments, record: Path, threads: int | None, *, dry_run: bool) -> None:
    from flows.cli.running import complete, requested
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.records.reports import score_tables
    from tasks.records.run_inputs import RunInputs

    store = Store(store_folder(root))
    inputs = RunInputs(root, store)
    previewer = requested(root, store, *arguments, lambda line: typer.echo(line, err=True))
    hold(store)
    inputs.check_data(previewer.request.dataset)
    preview = previewer.before(only=dry_run)
    if (dry_run or preview.todo) and (seeds := compared_seeds(preview.plan)) is not None:
        show_detectable_difference(console, preview.prepared, seeds)
    if dry_run or preview.todo:
        show_left_out(console, preview.prepared)
    if dry_run:
        show_plan(console, root, preview.plan, preview.prepared, preview.stored, store, threads)
        return
    if preview.todo:
        inputs.check_data(previewer.request.dataset)
    outcome = complete(previewer, preview, threads)
    plan = outcome.preview.plan
    if outcome.computed or outcome.models:
        for model, version in outcome.models.items():
            console.print(message("registered [bold]{model}[/bold] version {version}", model=model, version=version))
        show_warning(console, store, plan, outcome.models)
    else:
        show_nothing_to_compute(console, len(plan.steps))
    commands = next_commands(plan, outcome.models)
    show_end(console, score_tables(store, plan), outcome.report, commands, smoke=arguments.smoke)
    record_complete_run(record, inputs, store, outcome, previewer.request.dataset)
