"""The command line. Nothing heavy is imported before a command needs it, so that help and fully cached runs are
fast."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer
from rich.console import Console

from flows.cli.claims import claims
from flows.cli.compare import compare
from flows.cli.compress import compress
from flows.cli.data import data
from flows.cli.doctor import doctor
from flows.cli.exit_status import handle_errors
from flows.cli.export import export
from flows.cli.init import check, init
from flows.cli.lattice import lattice
from flows.cli.localized_help import LocalizedGroup, choose_language
from flows.cli.neighbours import neighbours
from flows.cli.options import Dataset, Variants, model_names
from flows.cli.predict import predict
from flows.cli.promote import promote, rollback
from flows.cli.publish import publish
from flows.cli.recipes import recipes
from flows.cli.reproduce import reproduce
from flows.cli.run import Smoke, run
from flows.cli.serve import serve
from flows.cli.servers import deploy, down, schedule, up
from flows.cli.store import store_app
from flows.cli.systems import systems
from pipelines.messages.translation import message
from tasks.environment import project_root
from tasks.projects.ownership import refuse_foreign_project
from tasks.servers.environment import prepare_environment

app = typer.Typer(
    name="cursus",
    cls=LocalizedGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Raw text in; a registered, compressed, evaluated language model out.\n\n"
    "General → domain → task-adaptive → fine-tune → compress → evaluate. Start with [bold]cursus run[/bold]; "
    "[bold]cursus run --dry-run[/bold] shows what it would do. Your own text: one block in params.yaml (docs/data.md).",
)
console = Console(highlight=False)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"cursus {importlib.metadata.version('cursus')}")
        raise typer.Exit


@app.callback()
@handle_errors
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
    language: Annotated[
        str | None,
        typer.Option(
            help="Language of the output: en or zh; that of the locale when not given.",
            callback=choose_language,
            is_eager=True,  # before --help
        ),
    ] = None,
) -> None:
    refuse_foreign_project()


app.command(rich_help_panel="Project")(init)
app.command(rich_help_panel="Project")(check)
app.command(rich_help_panel="Project")(doctor)
app.command(rich_help_panel="Train")(run)


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
    draws: Annotated[
        int | None, typer.Option(min=1, help="Draws of pre-training on each side; the claim's own when not given.")
    ] = None,
    smoke: Smoke = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor cores for training.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan: steps, fingerprints, which are cached, estimated times.")
    ] = False,
) -> None:
    """Measure a published claim: systems against each other, and what they had in common.

    Example: cursus claim crf/entities --data weibo_ner
    """
    from flows.cli.claim import measure

    measure(project_root(), console, name, dataset or (), variant or (), seeds, smoke, threads, dry_run, draws)


app.command(rich_help_panel="Train")(claims)
app.command(rich_help_panel="Train")(data)


@app.command(rich_help_panel="Look")
@handle_errors
def lineage(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A registered model, a fingerprint or its first digits, or a stage; the dataset's champion, or else "
            "its latest model, when not given.",
            autocompletion=model_names,
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
        console.print(message("model    {why}", why=chosen.why), markup=False, soft_wrap=True)
        model = chosen.fingerprint
    console.print(tree(root, store, model), markup=False, soft_wrap=True)


app.command(rich_help_panel="Train")(lattice)
app.command(rich_help_panel="Use")(predict)
app.command(rich_help_panel="Use")(serve)
app.command(rich_help_panel="Use")(export)
app.command(rich_help_panel="Use")(compress)
app.command(rich_help_panel="Use")(publish)
app.command(rich_help_panel="Use")(promote)
app.command(rich_help_panel="Use")(rollback)
app.command(rich_help_panel="Look")(recipes)
app.command(rich_help_panel="Look")(systems)
app.command(rich_help_panel="Look")(compare)
app.command(rich_help_panel="Look")(neighbours)
app.command(rich_help_panel="Look")(reproduce)
app.add_typer(store_app, name="store", rich_help_panel="Look")
for command in (up, deploy, schedule, down):
    app.command(rich_help_panel="Servers")(command)


if __name__ == "__main__":
    app()
