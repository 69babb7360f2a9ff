"""What the evaluate stages of an execution found, as tables of scores: one form for the page, the terminal and Prefect.

A section of `evaluation.json` is known by what it holds, not by the evaluation's name:

    stages, metrics             a row a judged stage; with `ladder`, consecutive ones are compared
    baselines                   rows beside the stages of the same evaluate stage
    stages with by_shots        a row a prompted stage and number of examples
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pipelines.judging.evaluations.stage import EVALUATION

Estimated: TypeAlias = Mapping[str, Any]
"""A score as it is written: mean, low, high, per_seed."""

EXECUTION = "execution.json"
"""The record of an execution, in the folder of its report."""
BASELINE_NAMES = {"majority": "majority class", "tfidf": "TF-IDF + logistic regression"}


@dataclass(frozen=True)
class Judged:
    """What one evaluate stage found."""

    stage: str
    dataset: Mapping[str, Any]
    sections: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class ScoreRow:
    """One model, or one way to ask it."""

    name: str
    scores: Mapping[str, Estimated]
    """Metric to score; a metric that was not measured of this row is absent."""
    baseline: bool = False
    note: str = ""
    seeds: int | None = None
    """Models behind the mean; None for a baseline."""


@dataclass(frozen=True)
class ScoreTable:
    """Models side by side on the same examples."""

    stage: str
    """The evaluate stage."""
    section: str
    prompted: bool
    """Whether the models were asked by prompts rather than fine-tuned."""
    metrics: tuple[str, ...]
    rows: tuple[ScoreRow, ...]
    record: Mapping[str, Any]
    """The section it was made from."""


def read_judged(store: Path, steps: Iterable[tuple[str, str]]) -> list[Judged]:
    """What the evaluate stages among `steps`, (stage, fingerprint) each, found; in their order."""
    found = []
    for stage, fingerprint in steps:
        path = store / fingerprint / EVALUATION
        if path.is_file():
            document = json.loads(path.read_text(encoding="utf-8"))
            found.append(Judged(stage, document.get("dataset", {}), document["sections"]))
    return found


def score_tables(judged: Iterable[Judged]) -> list[ScoreTable]:
    """Every table of scores, in the order in which they were found."""
    tables = []
    for one in judged:
        beside = [row for section in one.sections.values() for row in section.get("baselines", ())]
        for name, section in one.sections.items():
            metrics = tuple(section.get("metrics", ()))
            entries = section.get("stages", ())
            # what attacks cost stands side by side with what was scored without them, on a page of its own
            if metrics and entries and "attacks" not in section:
                prompted = any("by_shots" in entry for entry in entries)
                rows = _prompted(entries, metrics) if prompted else _stages(beside, entries, metrics)
                tables.append(ScoreTable(one.stage, name, prompted, metrics, tuple(rows), section))
    return tables


def _stages(
    baselines: Iterable[Mapping[str, Any]], entries: Iterable[Mapping[str, Any]], metrics: tuple[str, ...]
) -> list[ScoreRow]:
    rows = []
    for entry in baselines:
        settings = entry.get("settings")
        note = f"C = {settings['C']}, {settings['analyzer']} 1–{settings['ngrams'][1]}-grams" if settings else ""
        title = BASELINE_NAMES.get(entry["name"], entry["name"])
        rows.append(ScoreRow(title, _of(entry, metrics), baseline=True, note=note))
    rows += [ScoreRow(entry["stage"], _of(entry, metrics), seeds=len(entry["seeds"])) for entry in entries]
    return rows


def _prompted(entries: Iterable[Mapping[str, Any]], metrics: tuple[str, ...]) -> list[ScoreRow]:
    return [
        ScoreRow(f"{entry['stage']}, {shots(asked['shots'])}", _of(asked, metrics), seeds=len(entry["seeds"]))
        for entry in entries
        for asked in entry["by_shots"]
    ]


def shots(number: int) -> str:
    """How many answered examples a prompt held."""
    return "no example" if number == 0 else "1 example" if number == 1 else f"{number} examples"


def _of(entry: Mapping[str, Any], metrics: tuple[str, ...]) -> dict[str, Estimated]:
    return {metric: entry[metric] for metric in metrics if metric in entry}
