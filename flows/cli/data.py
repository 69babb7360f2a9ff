"""`cursus data`: a dataset prepared and validated, and what was left out of it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from flows.cli.exit_status import handle_errors
from flows.cli.options import dataset_names
from pipelines.messages.translation import localized_page, message
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

console = Console(highlight=False)


@handle_errors
def data(
    dataset: Annotated[
        str | None,
        typer.Argument(help="A dataset of params.yaml; its default when not given.", autocompletion=dataset_names),
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="The data changed on purpose: accept its drift from the last version.")
    ] = False,
) -> None:
    """Prepare and validate a dataset with DVC and Great Expectations; after checking its sources for changes."""
    root = project_root()
    prepare_environment(root)
    from tasks.datasets.left_out import left_out
    from tasks.datasets.lock import prepare_in_turn
    from tasks.datasets.planning import resolve_request

    name = resolve_request(root, dataset, None, (), False).dataset
    prepared = prepare_in_turn(
        name,
        root,
        lambda step: typer.echo(f"  {step}", err=True),
        lambda line: typer.echo(line, err=True),
        accept=accept,
    )
    heads = (message("table"), message("rows"), "md5")
    table = Table(*heads, title=f"{prepared.name} ({prepared.language})", title_justify="left")
    counts = prepared.summary["tables"]
    for part in (one for one in prepared.tables if one in counts):  # without second names
        table.add_row(part, f"{counts[part]['documents']:,}", prepared.digests[part])
    console.print(table)
    for line in left_out(prepared.summary):
        console.print(line, markup=False, soft_wrap=True)
    card = localized_page(prepared.folder / "card.html")
    console.print(message("card      {path}", path=card), soft_wrap=True)
    docs = root / "data" / "docs" / prepared.name / "index.html"
    console.print(message("Data Docs {path}", path=docs), soft_wrap=True)
