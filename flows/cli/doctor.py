"""`cursus doctor`: what would stand in the way of a run, before one starts."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.cells import set_cell_size
from rich.console import Console
from rich.text import Text

from flows.cli.exit_status import handle_errors
from pipelines.errors import CursusError
from pipelines.messages.translation import message
from tasks.environment import project_root

console = Console(highlight=False)
STYLES = {"ok": "green", "note": "yellow", "problem": "red"}


def _project() -> Path | None:
    try:
        return project_root()
    except CursusError:
        return None


@handle_errors
def doctor() -> None:
    """Check Python, packages, compiler, disk, git, settings, permissions and ports; exits with 1 for a problem."""
    from tasks.diagnosis.check import State
    from tasks.diagnosis.examination import examine

    problems = 0
    for check in examine(_project()):
        problems += check.state is State.PROBLEM
        state, subject = set_cell_size(message(check.state), 9), set_cell_size(message(check.subject), 12)
        line = Text(state, style=STYLES[check.state]).append(subject, style="bold")
        console.print(line.append(check.sentence, style="not bold default"), soft_wrap=True)
    if problems:
        raise typer.Exit(1)
