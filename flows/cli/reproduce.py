"""`cursus reproduce`: reproduce a model's lineage in an empty store and compare it stage by stage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.cli.exit_status import handle_errors
from flows.cli.store_in_use import hold
from pipelines.errors import ReproductionError
from pipelines.messages.translation import message
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from tasks.reproduction.record import Reproduction

MARKS = {"identical": ("identical", "green"), "differs": ("differs", "red"), "not made": ("not computed", "dim")}


@handle_errors
def reproduce(
    model: Annotated[str, typer.Argument(help="A registered model, a fingerprint or its first digits, or a stage.")],
    into: Annotated[
        Path | None, typer.Option(help="An empty folder to reproduce it in; one inside the store when not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as one JSON object.")] = False,
) -> None:
    """Reproduce a model from its records alone, and compare every stage's digests with the recorded ones.

    Exit status 0 only when all are identical; 1 when a stage differs, which is shown with the reason. The reproduced
    artifacts are kept only then, or with --into.

    Example: cursus reproduce reviews-text-classification
    """
    root = project_root()
    # this command reports errors itself
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    prepare_environment(root)
    from flows.process.execute import execute
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.models.ancestry import resolve
    from tasks.reproduction.record import Reproduction, reproduction_folder
    from tasks.reproduction.reproduce import rebuild

    store = Store(store_folder(root))
    hold(store)
    _, fingerprint = resolve(root, store, model)
    remakes = rebuild(root, store, fingerprint)  # reports errors before anything starts
    folder = reproduction_folder(store, fingerprint, into)
    minutes = sum(remake.record.environment.seconds for remake in remakes) / 60
    typer.echo(
        message(
            "{stages} stages to reproduce; they took {minutes:.1f} minutes when they were first computed",
            stages=len(remakes),
            minutes=minutes,
        ),
        err=True,
    )
    try:
        answer = execute({"model": model, "into": str(folder)}, root, "reproduce")
        result = Reproduction.model_validate(answer)
    except ReproductionError:
        partial = Reproduction.read(folder)
        assert partial is not None
        result = partial
    if as_json:
        typer.echo(result.model_dump_json(indent=1))
    else:
        _show(result)
    if not result.identical:
        raise typer.Exit(1)


def _show(result: Reproduction) -> None:
    """Print one row per stage, then the verdict, and the differences of the first stage that differs."""
    console = Console(highlight=False)
    heads = (message("stage"), message("recorded"), message("outcome"), message("time"))
    title = message("reproduction of {model}", model=result.model)
    table = Table(*heads, title=title, title_justify="left")
    for one in result.stages:
        word, colour = MARKS[one.outcome]
        took = "" if one.seconds is None else f"{one.seconds:.0f} s"
        table.add_row(one.stage, one.fingerprint[:8], Text(word, style=colour), took)
    console.print(table)
    if result.identical:
        console.print(
            message(
                "{stages} of {stages} stages are byte for byte identical to the recorded ones",
                stages=len(result.stages),
            )
        )
    if (first := result.first) is not None:
        console.print(message("{stage} is the first stage that differs", stage=first.stage), style="bold")
        for name, digests in first.files.items():
            console.print(f"  {name}: sha256 {digests}", markup=False)
        for reason in first.reasons:
            console.print(message("  why: {reason}", reason=reason), markup=False, soft_wrap=True)
        line = message("the reproduced artifacts are in {folder}", folder=result.folder)
        console.print(line, markup=False, soft_wrap=True)
