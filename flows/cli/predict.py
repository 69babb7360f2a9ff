"""`cursus predict`: texts or examples in, answers out, from any model that answers a task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from pipelines.errors import CursusError
from pipelines.models.untrusted import refuse_unsafe
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from pipelines.task_families import Row

LONGEST_SHOWN = 80
"""Characters of a text shown next to its answer."""


def predict(
    root: Path,
    texts: Sequence[str],
    lines: Iterable[str],
    model: str | None,
    as_json: bool,
    task: str | None = None,
    dataset: str | None = None,
) -> None:
    """Print an answer for each of `texts`, or for each of `lines` when there are none.

    A line is a text; with `as_json`, a JSON object with the task family's columns, and the output is JSON as well.
    `task` chooses one of the tasks of a model that answers several. Without `model`, it is the default one of
    `dataset`.
    """
    prepare_environment(root)
    from pipelines.models.extracting import extract_task

    with TemporaryDirectory(prefix="cursus-task-") as scratch:
        _answer(extract_task(_folder(root, model, dataset), task, Path(scratch)), texts, lines, as_json)


def _answer(folder: Path, texts: Sequence[str], lines: Iterable[str], as_json: bool) -> None:
    from pipelines.serving.answering.answerer import Answerer
    from pipelines.serving.answering.examples import as_json as written
    from pipelines.serving.answering.examples import family_of, input_columns, parse_examples
    from pipelines.serving.answering.inference import has_class_probabilities

    family = family_of(folder)
    if texts or not as_json:
        if not family.is_single_text:
            columns = ", ".join(f'"{name}": …' for name in input_columns(family))
            raise CursusError(
                f"this model's task is {family.name}, whose examples are more than one text: pass JSON on standard "
                f"input with --json, one object per line: {{{columns}}}"
            )
        rows: list[Row] = [{"text": text} for text in texts or (line.rstrip("\n") for line in lines)]
    else:
        rows = list(parse_examples(family, lines))
    if not rows:
        raise CursusError("no input: pass texts as arguments, or lines on standard input")
    if family.is_single_text and has_class_probabilities(folder):
        _classify(folder, [str(row["text"]) for row in rows], as_json)
        return
    for row, answer in zip(rows, Answerer(folder).answer(rows), strict=True):
        if as_json:
            typer.echo(json.dumps({"answer": written(answer)}, ensure_ascii=False))
        else:
            typer.echo(f"{answer}  {_shown(row['text'])}")


def _classify(folder: Path, texts: Sequence[str], as_json: bool) -> None:
    """Print the label of each text with its probability; as JSON, the probabilities of all labels."""
    from pipelines.serving.answering.inference import open_predictor

    predictor = open_predictor(folder)
    for text, row in zip(texts, predictor.predict(texts), strict=True):
        best = int(row.argmax())
        if as_json:
            probabilities = {label: round(float(p), 6) for label, p in zip(predictor.labels, row, strict=True)}
            output = {"label": predictor.labels[best], "probabilities": probabilities}
            typer.echo(json.dumps(output, ensure_ascii=False))
        else:
            typer.echo(f"{predictor.labels[best]}  {row[best]:.3f}  {_shown(text)}")


def _folder(root: Path, model: str | None, dataset: str | None) -> Path:
    """The folder that `model` names: a path, or an artifact; for None, that of the default model of `dataset`, which is
    printed."""
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.models.ancestry import resolve
    from tasks.models.default import default_model

    if model is not None and Path(model).is_dir():
        from pipelines.models.oversized import refuse_oversized

        refuse_unsafe(Path(model))
        refuse_oversized(Path(model))
        return Path(model)
    store = Store(store_folder(root))
    if model is not None:
        return store.find(resolve(root, store, model)[1]).folder
    chosen = default_model(root, store, dataset)
    typer.echo(f"model    {chosen.why} {chosen.fingerprint[:8]}", err=True)
    return store.find(chosen.fingerprint).folder


def _shown(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
