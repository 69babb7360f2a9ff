"""`cursus publish`: a model with its card, as a folder or on the Hugging Face Hub."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console

from flows.cli.exit_status import handle_errors
from flows.cli.options import model_names
from flows.cli.writing import writing
from pipelines.messages.translation import message
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

HUB = "hub:"
console = Console(highlight=False)


@handle_errors
def publish(
    model: Annotated[
        str,
        typer.Argument(
            help="A dataset or registered model with an alias, a stage, or a fingerprint's first digits.",
            autocompletion=model_names,
        ),
    ],
    target: Annotated[str, typer.Argument(help="A new folder, or hub:owner/name for the Hugging Face Hub.")],
    task: Annotated[
        str | None, typer.Option(help="Which of its tasks to publish, for a model of several (recipes with `lines`).")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the card; the model's name when not given.")] = None,
    licence: Annotated[str, typer.Option(help="The model's licence, for example apache-2.0.")] = "other",
    intended_use: Annotated[
        str | None, typer.Option(help="What it is for, in a sentence; stated from task and data when not given.")
    ] = None,
) -> None:
    """Publish a model with a card made of its records: data, leaks, scores with intervals, claims, licences.

    Example: cursus publish reviews@champion published --licence apache-2.0
    """
    if target.startswith(HUB):
        os.environ["HF_HUB_OFFLINE"] = "0"  # read when the library is imported
    root = project_root()
    prepare_environment(root)
    from tasks.models.reference import named_model
    from tasks.publishing.publish import Publication, require_token, upload
    from tasks.publishing.publish import publish as write

    if target.startswith(HUB):
        require_token()  # before a large model is copied
    named = named_model(root, model)
    publication = Publication(title or model, licence, intended_use)

    def report(line: str) -> None:
        typer.echo(line, err=True)

    report(message("copying the model and opening it in plain transformers …"))
    with TemporaryDirectory(prefix="cursus-publish-") as scratch:
        folder = Path(scratch) / "model" if target.startswith(HUB) else Path(target)
        with writing(folder):
            plain = write(root, named, task, folder, publication)
        where = upload(folder, target.removeprefix(HUB), report) if target.startswith(HUB) else str(folder)
    console.print(message("published {figure}", figure=where), markup=False, soft_wrap=True)
    opened = message("opens with cursus.load alone")
    if plain is not None:
        opened = (
            message("opens with {name}", name=plain.name)
            if plain.complete
            else message("opens with {name}, without its head", name=plain.name)
        )
    console.print(f"          {opened}", soft_wrap=True)
