"""How a command ends: a user's mistake is one sentence, an interrupt says what is kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import typer
from rich.console import Console

from flows.process.recoverable import full_disk
from pipelines.errors import CursusError
from tasks.environment import project_root

P = ParamSpec("P")
R = TypeVar("R")


def told(command: Callable[P, R]) -> Callable[P, R]:
    """A user's mistake is one sentence and exit code 2; an interrupt says what is kept."""

    @wraps(command)
    def run(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            return command(*arguments, **keywords)
        except CursusError as error:
            raise _refused(error) from None
        except OSError as error:
            full = full_disk(error, project_root())
            if full is None:
                raise
            raise _refused(full) from None
        except KeyboardInterrupt:
            typer.echo(
                "stopped; finished stages are kept, and the same command continues from the last checkpoint", err=True
            )
            raise typer.Exit(130) from None

    return run


def _refused(error: CursusError) -> typer.Exit:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"error: {error}", style="red", markup=False)
    return typer.Exit(2)
