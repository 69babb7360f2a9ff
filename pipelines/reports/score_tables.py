"""The results of an execution's evaluate stages as score tables: one form for the report, the terminal and Prefect.

A section of `evaluation.json` is recognised by its keys, not by the name of the evaluation:

    stages, metrics             a row per evaluated stage; with `ladder`, consecutive ones are compared
    baselines                   additional rows in the tables of the same evaluate stage
    stages with by_shots        a row per prompted stage and number of examples
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pipelines.messages.translation import ENGLISH, in_language, message, template, translatable

Estimated: TypeAlias = Mapping[str, Any]
"""A recorded score: mean, low, high, per_seed."""

EXECUTION = "execution.json"
"""The record of an execution, in the folder of its report."""
BASELINE_NAMES = {
    "majority": translatable("training majority"),
    "most_frequent": translatable("most frequent test class"),
    "tfidf": translatable("TF-IDF + logistic regression"),
}


@dataclass(frozen=True)
class EvaluationRecord:
    """The results of one evaluate stage."""

    stage: str
    dataset: Mapping[str, Any]
    sections: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class ScoreRow:
    """One model, or one way to prompt it."""

    name: str
    """Name in records, in English."""
    scores: Mapping[str, Estimated]
    """Metric to score, without metrics that were not measured for this row."""
    baseline: bool = False
    note: str = ""
    seeds: int | None = None
    """Number of models behind the mean; None for a baseline."""
    prompt: tuple[str, int] | None = None
    """The stage and the number of solved examples in its prompt, of a prompted model."""

    @property
    def title(self) -> str:
        """The name in the current language."""
        if self.prompt is not None:
            stage, number = self.prompt
            return f"{stage}, {shots(number)}"
        return template(self.name) if self.baseline else self.name


@dataclass(frozen=True)
class ScoreTable:
    """Models side by side on the same examples."""

    stage: str
    """The evaluate stage."""
    section: str
    prompted: bool
    """Whether the models were prompted rather than fine-tuned."""
    metrics: tuple[str, ...]
    rows: tuple[ScoreRow, ...]
    record: Mapping[str, Any]
    """The section that the table was made from."""
    task: str | None = None
    """The named task on whose test table they were judged; None for the main one."""


def is_smoke(execution: Mapping[str, Any]) -> bool:
    """Whether the execution of an `execution.json` was a smoke run, whose scores mean nothing."""
    return bool(execution.get("smoke"))


def read_evaluations(store: Path, steps: Iterable[tuple[str, str]]) -> list[EvaluationRecord]:
    """The results of the evaluate stages among `steps`, (stage, fingerprint) each, in their order."""
    return [read_evaluation(stage, path) for stage, path in evaluation_files(store, steps)]


def evaluation_files(store: Path, steps: Iterable[tuple[str, str]]) -> list[tuple[str, Path]]:
    """The stage and the file with the results of each evaluate stage among `steps`, (stage, fingerprint) each."""
    from pipelines.judging.evaluations.stage import EVALUATION

    paths = [(stage, store / fingerprint / EVALUATION) for stage, fingerprint in steps]
    return [(stage, path) for stage, path in paths if path.is_file()]


def read_evaluation(stage: str, path: Path) -> EvaluationRecord:
    """The results of the evaluate stage `stage`, which are in the file `path`."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return EvaluationRecord(stage, document.get("dataset", {}), document["sections"])


def score_tables(evaluations: Iterable[EvaluationRecord]) -> list[ScoreTable]:
    """Every score table, in the order of the evaluations and their sections."""
    tables = []
    for one in evaluations:
        baselines = [row for section in one.sections.values() for row in section.get("baselines", ())]
        for name, section in one.sections.items():
            metrics = tuple(section.get("metrics", ()))
            entries = section.get("stages", ())
            # scores under attack are on a page of their own, next to those without an attack
            if metrics and entries and "attacks" not in section:
                prompted = any("by_shots" in entry for entry in entries)
                rows = _prompted(entries, metrics) if prompted else _stages(baselines, entries, metrics)
                tables.append(
                    ScoreTable(one.stage, name, prompted, metrics, tuple(rows), section, one.dataset.get("task"))
                )
    return tables


def _stages(
    baselines: Iterable[Mapping[str, Any]], entries: Iterable[Mapping[str, Any]], metrics: tuple[str, ...]
) -> list[ScoreRow]:
    rows = []
    for entry in baselines:
        settings = entry.get("settings")
        note = ""
        if settings:
            note = message(
                "C = {c}, {analyzer} 1–{longest}-grams",
                c=settings["C"],
                analyzer=settings["analyzer"],
                longest=settings["ngrams"][1],
            )
        if settings and "trained_on" in settings:
            note += message(", fitted on {texts:,} training texts", texts=settings["trained_on"])
        title = BASELINE_NAMES.get(entry["name"], entry["name"])
        rows.append(ScoreRow(title, _of(entry, metrics), baseline=True, note=note))
    rows += [ScoreRow(entry["stage"], _of(entry, metrics), seeds=len(entry["seeds"])) for entry in entries]
    return rows


def _prompted(entries: Iterable[Mapping[str, Any]], metrics: tuple[str, ...]) -> list[ScoreRow]:
    with in_language(ENGLISH):  # names in records
        names = {number: shots(number) for entry in entries for number in (one["shots"] for one in entry["by_shots"])}
    return [
        ScoreRow(
            f"{entry['stage']}, {names[prompted['shots']]}",
            _of(prompted, metrics),
            seeds=len(entry["seeds"]),
            prompt=(entry["stage"], prompted["shots"]),
        )
        for entry in entries
        for prompted in entry["by_shots"]
    ]


def shots(number: int) -> str:
    """Number of solved examples in a prompt, in words."""
    if number == 0:
        return message("no example")
    return message("1 example") if number == 1 else message("{number} examples", number=number)


def _of(entry: Mapping[str, Any], metrics: tuple[str, ...]) -> dict[str, Estimated]:
    return {metric: entry[metric] for metric in metrics if metric in entry}
