"""`cursus neighbours`: the nearest neighbours of a word, alone or in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from flows.cli.exit_status import handle_errors
from flows.cli.options import Dataset, Model
from pipelines.messages.translation import message
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from tasks.models.neighbours import Neighbours


@handle_errors
def neighbours(
    word: Annotated[str, typer.Argument(help="A word.")],
    sentence: Annotated[
        str | None,
        typer.Option(
            "--in", help="A sentence with the word, whose state there is compared; else the word's own vector."
        ),
    ] = None,
    model: Model = None,
    dataset: Dataset = None,
    texts: Annotated[
        Path | None,
        typer.Option(help="Texts whose sentences are compared, one per line; else those of the model's lineage."),
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option(min=0, help="The layer whose states count, 0 for the embeddings; else the last."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=500, help="Neighbours to show.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show the nearest neighbours of a word: of its vector, or, with --in, of its state in a sentence, which tells
    senses apart in a contextual model.

    Example: cursus neighbours key --in "Each key of the mapping has one value." --model task
    """
    root = project_root()
    prepare_environment(root)
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.models.default import default_model
    from tasks.models.exporting import source_of
    from tasks.models.neighbours import nearest_occurrences, nearest_words

    if model is None:
        chosen = default_model(root, Store(store_folder(root)), dataset)
        typer.echo(message("model    {why}", why=chosen.why), err=True)
        model = chosen.fingerprint
    with TemporaryDirectory(prefix="cursus-task-") as scratch:
        source = source_of(root, model, None, Path(scratch))
        if sentence is None:
            answer = nearest_words(source, word, top)
        else:
            answer = nearest_occurrences(root, source, word, sentence, texts, top, layer)
    if as_json:
        typer.echo(json.dumps(answer.as_json(), ensure_ascii=False))
        return
    _show(Console(highlight=False), answer, source.title)


def _show(console: Console, answer: Neighbours, title: str) -> None:
    """Print a neighbour a line, its cosine first, with the word underlined."""
    for one in answer.neighbours:
        line = Text(f"{one.cosine:.3f}  {one.text}")
        if one.end:
            line.stylize("bold underline", one.start + 7, one.end + 7)
        console.print(line, soft_wrap=True)
    occurrences = bool(answer.neighbours and answer.neighbours[0].end)
    sentence = "of {count:,} words of {source}; {model}"
    if occurrences:
        sentence = "of {count:,} sentences with the word, of {source}; {model}"
    compared = message(sentence, count=answer.compared, source=answer.source, model=title)
    console.print(compared, style="dim", markup=False, soft_wrap=True)
    if occurrences and not answer.contextual:
        sentence = (
            "This layer has one vector for the word, whatever the sentence: all are equally near. Name a contextual "
            "model, or ask without --in for the nearest words."
        )
        console.print(message(sentence), markup=False, soft_wrap=True)
