"""`cursus init` and `cursus check`: a project of one's own, and whether it keeps the contracts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.cli.exit_status import handle_errors
from flows.cli.writing import writing
from pipelines.messages.translation import message
from tasks.environment import project_root

console = Console(highlight=False)


@handle_errors
def init(
    folder: Annotated[Path, typer.Argument(help="The folder to make.")],
    template: Annotated[
        str, typer.Option(help="text: own files with example texts; chinese: text of a package; empty: no dataset.")
    ] = "text",
) -> None:
    """Make a project: settings, recipes, a folder for own parts, and what DVC, Prefect, make and CI read.

    Example: cursus init my-project --template chinese
    """
    from tasks.projects.creation import create

    with writing(folder):
        create(folder, template)
    console.print(message("made     {folder}", folder=folder.resolve()), markup=False, soft_wrap=True)
    todo = message("edit params.yaml") if template == "empty" else "cursus run   ·   cursus serve"
    where = shlex.quote(str(folder))
    console.print(message("next     {commands}", commands=f"cd {where}   ·   {todo}"), markup=False, soft_wrap=True)


@handle_errors
def check() -> None:
    """Check the project's settings, recipes and own parts against their contracts; exits with 1 for a problem."""
    from tasks.projects.own_parts import check_project

    problems = 0
    for one in check_project(project_root()):
        problems += len(one.problems)
        state = message("problem ") if one.problems else message("ok      ")
        console.print(f"{state} {one.subject}", markup=False, soft_wrap=True)
        for problem in one.problems:
            console.print(f"           {problem}", markup=False, soft_wrap=True)
    if problems:
        raise typer.Exit(1)
