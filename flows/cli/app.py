"""The command line. Nothing heavy is imported before a command needs it, so that help and fully cached runs are
fast."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from flows.cli.display import (
    compared_seeds,
    show_detectable_difference,
    show_next,
    show_plan,
    show_recipe,
    show_scores,
    show_warning,
)
from flows.cli.exit_status import handle_errors
from flows.cli.export import export
from flows.cli.finished import finished_report
from flows.cli.lattice import lattice
from flows.cli.promote import promote, rollback
from flows.cli.reproduce import reproduce
from flows.cli.store import store_app
from flows.cli.store_in_use import hold
from flows.cli.systems import systems
from pipelines.errors import CursusError
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

app = typer.Typer(
    name="cursus",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Raw text in; a registered, compressed, evaluated language model out.\n\n"
    "General → domain → task-adaptive → fine-tune → compress → evaluate. Start with [bold]cursus run[/bold]; "
    "[bold]cursus run --dry-run[/bold] shows what it would do. Your own text: one block in params.yaml (docs/data.md).",
)
console = Console(highlight=False)

Dataset = Annotated[str | None, typer.Option("--data", help="A dataset of params.yaml; its default when not given.")]
Variants = Annotated[
    list[str] | None, typer.Option("--variant", help="A variant of the recipe, for example hour or minilm; repeatable.")
]
Smoke = Annotated[bool, typer.Option("--smoke", help="Tiny sizes and budgets: only tests that everything runs.")]


@app.command(rich_help_panel="Train")
@handle_errors
def run(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe (cursus recipes); the dataset's own when not given.")
    ] = None,
    dataset: Dataset = None,
    variant: Variants = None,
    smoke: Smoke = False,
    until: Annotated[str | None, typer.Option(help="Stop after this stage.")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Processor cores for training; all when not given.")
    ] = None,
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


@app.command(rich_help_panel="Train")
@handle_errors
def claim(
    name: Annotated[
        str, typer.Argument(help="recipe/claim, for example crf/entities; a recipe alone lists its claims.")
    ],
    dataset: Annotated[
        list[str] | None,
        typer.Option("--data", help="A dataset of params.yaml; role=dataset for a claim about several, repeatable."),
    ] = None,
    variant: Variants = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Models on each side; the claim's own number when not given.")
    ] = None,
    smoke: Smoke = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor cores for training.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan: steps, fingerprints, which are cached, estimated times.")
    ] = False,
) -> None:
    """Measure a published claim: systems against each other on the same data, tokens, steps and seeds.

    Example: cursus claim crf/entities --data weibo_ner
    """
    from flows.cli.claim import measure

    measure(project_root(), console, name, dataset or (), variant or (), seeds, smoke, threads, dry_run)


@app.command(rich_help_panel="Train")
@handle_errors
def data(
    dataset: Annotated[str | None, typer.Argument(help="A dataset of params.yaml; its default when not given.")] = None,
) -> None:
    """Prepare and validate a dataset with DVC and Great Expectations; after checking its sources for changes."""
    root = project_root()
    prepare_environment(root)
    from tasks.datasets.lock import prepare_in_turn
    from tasks.datasets.planning import resolve_request

    name = resolve_request(root, dataset, None, (), False).dataset
    prepared = prepare_in_turn(
        name, root, lambda step: typer.echo(f"  {step}", err=True), lambda line: typer.echo(line, err=True)
    )
    table = Table("table", "rows", "md5", title=f"{prepared.name} ({prepared.language})", title_justify="left")
    counts = prepared.summary["tables"]
    for part in (one for one in prepared.tables if one in counts):  # without second names
        table.add_row(part, f"{counts[part]['documents']:,}", prepared.digests[part])
    console.print(table)
    console.print(f"Data Docs {root / 'data' / 'docs' / prepared.name / 'index.html'}", soft_wrap=True)


@app.command(rich_help_panel="Look")
@handle_errors
def lineage(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A registered model, a fingerprint or its first digits, or a stage; the dataset's champion, or else "
            "its latest model, when not given."
        ),
    ] = None,
    dataset: Dataset = None,
) -> None:
    """Print a model's lineage: the tree from data to the served model."""
    root = project_root()
    prepare_environment(root)
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.models.ancestry import lineage as tree
    from tasks.models.default import default_model

    store = Store(store_folder(root))
    if model is None:
        chosen = default_model(root, store, dataset)
        console.print(f"model    {chosen.why}", markup=False, soft_wrap=True)
        model = chosen.fingerprint
    console.print(tree(root, store, model), markup=False, soft_wrap=True)


@app.command(rich_help_panel="Look")
@handle_errors
def recipes(
    name: Annotated[
        str | None, typer.Argument(help="A recipe whose stages are shown; all recipes when not given.")
    ] = None,
) -> None:
    """List the recipes, or the stages of one."""
    from pipelines.recipe.load import Library

    library = Library(project_root() / "recipes")
    if name is None:
        for known in library.names():
            recipe = library.load(known)
            console.print(f"{known:<20} {recipe.paper:<20} {' → '.join(recipe.stages)}", soft_wrap=True)
        return
    recipe = library.load(name)
    show_recipe(console, recipe)


@app.command(rich_help_panel="Use")
@handle_errors
def predict(
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts to classify; lines of standard input when not given.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="A registered model, a stage, a fingerprint's first digits, or a folder; the dataset's champion, or "
            "else its latest model, when not given."
        ),
    ] = None,
    dataset: Dataset = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON in and out: one object per line, with the columns of the model's task.")
    ] = False,
    task: Annotated[
        str | None, typer.Option(help="Which of its tasks to answer, for a model of several (recipes with `lines`).")
    ] = None,
) -> None:
    """Predict with a trained model: classify texts, or answer its task's examples.

    Example: cursus predict --json < questions.jsonl
    """
    from flows.cli.predict import predict as answer

    answer(project_root(), texts or (), sys.stdin, model, as_json, task, dataset)


app.command(rich_help_panel="Train")(lattice)
app.command(rich_help_panel="Use")(export)
app.command(rich_help_panel="Use")(promote)
app.command(rich_help_panel="Use")(rollback)
app.command(rich_help_panel="Look")(systems)
app.command(rich_help_panel="Look")(reproduce)
app.add_typer(store_app, name="store", rich_help_panel="Look")


@app.command(rich_help_panel="Servers")
@handle_errors
def up(
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 for other machines, too (docs/servers.md).")
    ] = "127.0.0.1",
) -> None:
    """Start the Prefect server, a worker and the MLflow UI on this machine, and print their addresses."""
    root = project_root()
    from tasks.servers.services import up as start

    start(root, host=host)


@app.command(rich_help_panel="Servers")
@handle_errors
def down() -> None:
    """Stop the servers that `cursus up` started."""
    from tasks.servers.services import down as stop

    stop(project_root())


if __name__ == "__main__":
    app()
