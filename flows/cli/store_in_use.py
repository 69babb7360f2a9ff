"""The store, held for the time of a command: what it shows at its end is still there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from flows.cli.exit_status import AT_END

if TYPE_CHECKING:
    from pipelines.lineage.store import Store


def hold(store: Store) -> None:
    """Keep artifacts from being removed until the current command ends; waits, with a message, while some are."""
    AT_END.get().enter_context(store.shared(lambda line: typer.echo(line, err=True)))
