"""`cursus store …`: verify, gc, export, import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.cli.exit_status import told
from pipelines.errors import CursusError
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

console = Console(highlight=False)

store_app = typer.Typer(no_args_is_help=True, help="Keep the store: is everything in it whole, and what may go?")


@store_app.command()
@told
def verify() -> None:
    """Read every file of every artifact and compare it with what was published."""
    from pipelines.lineage.store import Store
    from pipelines.lineage.upkeep import flaws
    from tasks.datasets.planning import store_folder

    store = Store(store_folder(project_root()))
    found = list(flaws(store))
    if found:
        raise CursusError("\n".join(found))
    console.print(f"{sum(1 for _ in store.all())} artifacts, all as they were published")


@store_app.command()
@told
def gc(
    days: Annotated[float, typer.Option(min=0, help="Keep what is younger, and what that was made from.")] = 7,
    delete: Annotated[bool, typer.Option("--delete", help="Remove them; without it they are only listed.")] = False,
) -> None:
    """Remove what no registered model was made from.

    Example: cursus store gc --days 30 --delete
    """
    root = project_root()
    prepare_environment(root)
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.models.upkeep import collect, removable

    gone = (collect if delete else removable)(root, Store(store_folder(root)), days)
    for one in gone:
        console.print(f"{one.fingerprint[:12]}  {one.bytes / 2**20:9,.1f} MiB  {one.what}", markup=False)
    total = f"{len(gone)} folders, {sum(one.bytes for one in gone) / 2**20:,.1f} MiB"
    console.print(f"removed {total}" if delete else f"{total} could go; --delete removes them")


@store_app.command("export")
@told
def export_model(
    model: Annotated[str, typer.Argument(help="A registered model, a fingerprint or its first digits, or a stage.")],
    file: Annotated[Path, typer.Argument(help="The tar file to write.")],
) -> None:
    """Write a model and everything it was made from to one file.

    Example: cursus store export cursus-classifier model.tar
    """
    root = project_root()
    prepare_environment(root)
    from pipelines.lineage.store import Store
    from pipelines.lineage.transfer import export
    from pipelines.lineage.upkeep import lineage_of
    from tasks.datasets.planning import store_folder
    from tasks.models.ancestry import resolve

    store = Store(store_folder(root))
    names = lineage_of(store, [resolve(root, store, model)[1]])
    size = export(store, names, file)
    console.print(f"{file}: {len(names)} artifacts, {size / 2**20:,.1f} MiB", soft_wrap=True)


@store_app.command("import")
@told
def import_models(file: Annotated[Path, typer.Argument(help="What `cursus store export` wrote.")]) -> None:
    """Take in the artifacts of a file, after every byte of it is checked."""
    from pipelines.lineage.store import Store
    from pipelines.lineage.transfer import take_in
    from tasks.datasets.planning import store_folder

    added = take_in(Store(store_folder(project_root())), file)
    console.print(f"{len(added)} artifacts added")
    for name in added:
        console.print(name, markup=False)
