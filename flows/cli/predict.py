"""`cursus predict`: texts or examples in, answers out, from any model that answers a task."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeAlias

import typer

from flows.cli.exit_status import handle_errors
from flows.cli.options import Dataset, Model
from pipelines.errors import CursusError, DataError
from pipelines.messages.translation import message
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from pipelines.task_families import Row, TaskFamily
    from tasks.serving.running import RunningServer

Predict: TypeAlias = "Callable[[Sequence[Row]], list[dict[str, Any]]]"
"""Examples to their predictions as JSON."""
LONGEST_SHOWN = 80
"""Characters of a text shown next to its answer."""
BLOCK = 512
"""Examples that are read before their answers are printed."""
JSON_LINES = (".jsonl", ".ndjson")
ENCODING = "utf-8-sig"
"""UTF-8, without the byte order mark with which some editors begin a file."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Control characters: a text, or a label of a model from elsewhere, could command the terminal with them."""


@handle_errors
def predict(
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts to classify; lines of standard input when not given.")
    ] = None,
    model: Model = None,
    dataset: Dataset = None,
    file: Annotated[
        Path | None,
        typer.Option(help="A file with one text a line, or one JSON object a line (--json, or a name in .jsonl)."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON in and out: one object per line, with the columns of the model's task.")
    ] = False,
    task: Annotated[
        str | None, typer.Option(help="Which of its tasks to answer, for a model of several (recipes with `lines`).")
    ] = None,
) -> None:
    """Predict with a trained model: classify texts, or answer its task's examples.

    Example: cursus predict --json < questions.jsonl
    """
    root, given = project_root(), texts or []
    _check_arguments(given)
    if file is not None and given:
        raise CursusError("texts and --file are two inputs; pass one of them")
    if file is None and not given and (sys.stdin is None or sys.stdin.isatty()):
        raise CursusError(
            "no input: pass texts as arguments, --file FILE, or lines on standard input (cursus predict < FILE)"
        )
    as_json = as_json or (file is not None and file.suffix in JSON_LINES)
    prepare_environment(root)
    from tasks.serving.running import default_server

    with ExitStack() as opened:
        source: Iterable[str] = ()
        if not given:
            source = _standard_input() if file is None else opened.enter_context(_open(file))
        lines = _decoded(source, file)
        if model is None and (server := default_server(root, dataset, task)) is not None:
            typer.echo(message("model    {why}", why=f"{server.title}, {server.url}"), err=True)
            _answer_by(server, given, lines, as_json, file)
            return
        from tasks.models.reference import named_model, refuse_foreign
        from tasks.serving.running import running_server

        named = named_model(root, model, dataset, checked=False)
        if model is None:
            typer.echo(message("model    {why}", why=named.title), err=True)
        if (running := running_server(root, named.folder, task)) is not None:
            _answer_by(running, given, lines, as_json, file)
            return
        from pipelines.models.extracting import extract_task
        from pipelines.serving.answering.examples import family_of

        if named.fingerprint is None:
            refuse_foreign(named.folder)
        scratch = Path(opened.enter_context(TemporaryDirectory(prefix="cursus-task-")))
        folder = extract_task(named.folder, task, scratch)
        _answer(_rows(family_of(folder), given, lines, as_json, file), lambda: _opened(folder), as_json)


def _answer_by(
    server: RunningServer, texts: Sequence[str], lines: Iterable[str], as_json: bool, file: Path | None
) -> None:
    """Print the answers of a running server, which refuses texts where its task needs more."""
    parsed = as_json and not texts
    rows = _rows(server.family(), texts, lines, as_json, file) if parsed else _texts(texts, lines)
    _answer(rows, lambda: server.predict, as_json)


def _opened(folder: Path) -> Predict:
    from pipelines.serving.answering.answering_model import AnsweringModel

    model = AnsweringModel(folder)
    return lambda rows: [prediction.as_json() for prediction in model.predict(rows)]


def _check_arguments(arguments: Sequence[str]) -> None:
    """Refuse `@file`: other programs read the file, and its name would be answered as if it were a text; and bytes
    that are not UTF-8."""
    for number, text in enumerate(arguments, 1):
        if text.startswith("@") and os.path.isfile(text[1:]):  # unlike Path.is_file, False for what no name can be
            raise CursusError(f"{text} names a file, and would be read as a text; write --file {text[1:]}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise DataError(f"text {number} is not UTF-8; write it into a file in UTF-8, and pass --file") from None


def _standard_input() -> TextIO:
    """Standard input, read as UTF-8 in every locale. Python reads it in the locale's encoding: in the locale C, other
    bytes become halves of surrogate pairs, which no tokenizer reads."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding=ENCODING, errors="strict")
    return sys.stdin


def _open(file: Path) -> TextIO:
    try:
        return file.open(encoding=ENCODING)
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}; check the path and its permissions") from None


def _decoded(lines: Iterable[str], file: Path | None) -> Iterator[str]:
    """`lines`, with an error that names the file where they are not UTF-8."""
    try:
        yield from (line.rstrip("\r\n") for line in lines)
    except UnicodeDecodeError as error:
        where = "standard input" if file is None else str(file)
        raise DataError(f"{where}: not UTF-8 ({error.reason}); save it as UTF-8") from None


def _answer(rows: Iterator[Row], open_model: Callable[[], Predict], as_json: bool) -> None:
    """Print an answer for each of `rows`, in blocks: next to its text, or, with `as_json`, as a JSON object."""
    # before the model is opened: a mistake in the first lines is reported at once
    block = list(islice(rows, BLOCK))
    if not block:
        raise CursusError("no input: pass texts as arguments, --file FILE, or lines on standard input")
    predict = open_model()
    while block:
        for row, prediction in zip(block, predict(block), strict=True):
            line = json.dumps(prediction, ensure_ascii=False) if as_json else CONTROL.sub(" ", _line(row, prediction))
            typer.echo(line)
        block = list(islice(rows, BLOCK))


def _line(row: Row, prediction: Mapping[str, Any]) -> str:
    """A prediction next to its text, with the probability of a label."""
    if "probabilities" not in prediction:
        return f"{prediction['answer']}  {_shown(row['text'])}"
    best = max(prediction["probabilities"].values())
    return f"{prediction['label']}  {best:.3f}  {_shown(row['text'])}"


def _rows(
    family: TaskFamily, texts: Sequence[str], lines: Iterable[str], as_json: bool, file: Path | None
) -> Iterator[Row]:
    from pipelines.serving.answering.checked_examples import checked_examples
    from pipelines.serving.answering.examples import input_columns

    if as_json and not texts:
        yield from checked_examples(family, lines, file)
        return
    if not family.is_single_text:
        columns = ", ".join(f'"{name}": …' for name in input_columns(family))
        raise CursusError(
            f"this model's task is {family.name}, whose examples are no texts with one label: pass JSON on standard "
            f"input with --json, one object per line: {{{columns}}}"
        )
    yield from _texts(texts, lines)


def _texts(texts: Sequence[str], lines: Iterable[str]) -> Iterator[Row]:
    return ({"text": text} for text in texts or lines)


def _shown(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
