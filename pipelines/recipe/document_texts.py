"""Check the columns that a stage on plain text reads: those that make up its documents, and those of annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipelines.components import did_you_mean
from pipelines.recipe.problems import Problem, Setting, listed
from pipelines.recipe.schema import Stage
from pipelines.recipe.tables import PLAIN

EVERY_CORPUS = {"text": "string", "source": "string", "collection": "string"}
"""Columns that every corpus has, and their types."""


def check_texts(stage: Stage, setting: Setting) -> Problem | None:
    """Check that every corpus of the stage has the columns in `texts`, and those that annotations read."""
    if stage.texts and not stage.kind.reads_plain_text:
        return (
            "texts",
            "columns of plain text make up a document, but this stage reads labelled examples, whose texts its head "
            "joins; remove texts",
        )
    if len(set(stage.texts)) < len(stage.texts):
        return "texts", f"{', '.join(stage.texts)} names a column twice; name each once"
    if not stage.kind.reads_plain_text or setting.corpora is None:
        return None
    required = [("texts", name, "string") for name in stage.texts]
    required += [("annotations", name, kind) for one in stage.annotations for name, kind in one.columns.items()]
    for word in stage.corpus:
        for key, name, kind in required:
            if problem := _problem(word, name, kind, setting.corpora):
                return key, problem
    return None


def _problem(word: str, name: str, kind: str, corpora: Mapping[str, Mapping[str, str]]) -> str | None:
    columns = EVERY_CORPUS | ({} if word in PLAIN else dict(corpora.get(word, {})))
    if columns.get(name) == kind:
        return None
    fits = [other for other, declared in corpora.items() if (EVERY_CORPUS | dict(declared)).get(name) == kind]
    if name in columns:
        return f"the column {name!r} of the corpus {word!r} holds {columns[name]}, and {kind} is read{_hint(fits)}"
    return (
        f"the corpus {word!r} has no column {name!r}, only {listed(columns)}.{did_you_mean(name, columns)} Declare it "
        f"under corpora.{word}.columns of the dataset{_hint(fits)}"
        if word not in PLAIN
        else f"the corpus {word!r} has no column {name!r}, only {listed(columns)}; columns are declared for named "
        f"corpora{_hint(fits)}"
    )


def _hint(fits: Iterable[str]) -> str:
    names = listed(fits)
    return "" if names == "none" else f", or read a corpus that has it: {names}"
