"""`cursus store …`: verify, gc, export, import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.cli.exit_status import handle_errors
from flows.cli.localized_help import LocalizedGroup
from flows.cli.store_in_use import hold
from flows.cli.writing import writing
from pipelines.errors import CursusError
from pipelines.messages.translation import message
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

console = Console(highlight=False)

store_app = typer.Typer(
    cls=LocalizedGroup, no_args_is_help=True, help="Maintain the store: verify, clean up, export and import artifacts."
)


@store_app.command()
@handle_errors
def verify() -> None:
    """Read every file of every artifact and compare it with its recorded digest."""
    from pipelines.lineage.store import Store
    from pipelines.lineage.upkeep import flaws
    from tasks.datasets.planning import store_folder

    store = Store(store_folder(project_root()))
    hold(store)
    damaged = list(flaws(store))
    if damaged:
        raise CursusError("\n".join(damaged))
    console.print(message("{artifacts} artifacts, all intact", artifacts=sum(1 for _ in store.all())))


@store_app.command()
@handle_errors
def gc(
    days: Annotated[
        float, typer.Option(min=0, help="Keep artifacts younger than this, and those they were made from.")
    ] = 7,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove the artifacts; without it they are only listed.")
    ] = False,
) -> None:
    """Remove artifacts from which no registered model was made. Waits for runs to end; a run that begins meanwhile
    waits, too.

    Example: cursus store gc --days 30 --delete
    """
    root = project_root()
    prepare_environment(root)
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.models.upkeep import collect, removable

    store = Store(store_folder(root))
    if delete:
        listed = collect(root, store, days, lambda line: typer.echo(line, err=True))
    else:
        listed = removable(root, store, days)
    for one in listed:
        console.print(f"{one.fingerprint[:12]}  {one.bytes / 2**20:9,.1f} MiB  {one.what}", markup=False)
    total = {"folders": len(listed), "size": sum(one.bytes for one in listed) / 2**20}
    console.print(
        message("removed {folders} folders, {size:,.1f} MiB", **total)
        if delete
        else message("{folders} folders, {size:,.1f} MiB can be removed; --delete removes them", **total)
    )


@store_app.command("export")
@handle_errors
def export_model(
    model: Annotated[str, typer.Argument(help="A registered model, a fingerprint or its first digits, or a stage.")],
    file: Annotated[Path, typer.Argument(help="The tar file to write.")],
) -> None:
    """Write a model and everything it was made from to one file.

    Example: cursus store export reviews-text-classification model.tar
    """
    root = project_root()
    prepare_environment(root)
    from pipelines.lineage.store import Store
    from pipelines.lineage.transfer import export_artifacts
    from pipelines.lineage.upkeep import lineage_of
    from tasks.datasets.planning import store_folder
    from tasks.models.ancestry import resolve

    store = Store(store_folder(root))
    hold(store)
    names = lineage_of(store, [resolve(root, store, model)[1]])
    with writing(file):
        size = export_artifacts(store, names, file)
    line = message("{file}: {artifacts} artifacts, {size:,.1f} MiB", file=file, artifacts=len(names), size=size / 2**20)
    console.print(line, soft_wrap=True)


@store_app.command("import")
@handle_errors
def import_models(file: Annotated[Path, typer.Argument(help="A file that `cursus store export` wrote.")]) -> None:
    """Import the artifacts of a file, after checking every byte of it."""
    from pipelines.lineage.store import Store
    from pipelines.lineage.transfer import import_artifacts
    from tasks.datasets.planning import store_folder

    store = Store(store_folder(project_root()))
    hold(store)
    added = import_artifacts(store, file)
    console.print(message("{artifacts} artifacts added", artifacts=len(added)))
    for name in added:
        console.print(name, markup=False)
