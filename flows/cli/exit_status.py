"""Error handling of the commands: their messages and exit statuses."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import typer
from rich.console import Console

from flows.process.recoverable import full_disk
from flows.process.stopping import INTERRUPTED, TERMINATED, Terminated, terminable
from pipelines.errors import CursusError
from pipelines.messages.translation import message
from tasks.environment import project_root

P = ParamSpec("P")
R = TypeVar("R")
AT_END: ContextVar[ExitStack] = ContextVar("at_end")
"""What is closed when the current command ends."""
STOPPED = "stopped; finished stages are kept, and the same command continues from the last checkpoint"


def handle_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Decorate a command so that a user's mistake prints one sentence and exits with status 2, Ctrl-C with 130, SIGTERM
    with 143."""

    @wraps(command)
    def run(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            with terminable(), ExitStack() as opened:
                AT_END.set(opened)
                return command(*arguments, **keywords)
        except CursusError as error:
            raise _usage_error(error) from None
        except OSError as error:
            full = full_disk(error, _project())
            if full is None:
                raise
            raise _usage_error(full) from None
        except KeyboardInterrupt as stop:
            typer.echo(message(STOPPED), err=True)
            raise typer.Exit(TERMINATED if isinstance(stop, Terminated) else INTERRUPTED) from None

    return run


def _project() -> Path:
    """The project, or the current folder where there is none."""
    try:
        return project_root()
    except CursusError:
        return Path.cwd()


def _usage_error(error: CursusError) -> typer.Exit:
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        message("error: {error}", error=error), style="red", markup=False
    )
    return typer.Exit(2)
