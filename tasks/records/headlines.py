"""The headline of an execution: the figures by which executions are compared.

best/accuracy  best/accuracy_low  best/accuracy_high    the best model on the test examples, ends of its interval
served/…  baseline/…                                    the model that would be served; the best baseline
best/rte/accuracy                                       on the named task `rte`
cost/seconds  cost/tokens                               of all steps, whenever they were computed
cost/bytes                                              of the files that serving the model needs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pipelines.judging.evaluations.latency import served_bytes
from pipelines.lineage.provenance import RECORD, Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.final_models import LineageStep, final_backbone, final_model
from pipelines.reports.score_tables import EvaluationRecord, ScoreRow, read_evaluations, score_tables

MOST_METRICS = 3
"""Metrics of a task in a headline; the report has all of them."""
DIGITS = 6
METRICS = "metrics"
"""Tag with the decisive metrics."""
BITS = "bits_per_byte"
"""Figure of language models that is comparable between tokenizers."""


@dataclass(frozen=True)
class Headline:
    """What an execution is compared by."""

    metrics: Mapping[str, float]
    """`best/accuracy`, `cost/seconds` … → value."""
    models: Mapping[str, str]
    """`best`, `served`, `baseline` → names of the models that these figures are of."""

    decisive: tuple[str, ...] = ()
    """The metric of each task by which its best model was chosen: `accuracy`, `rte/accuracy`."""

    @property
    def tags(self) -> dict[str, str]:
        """What the scores are of, as tags of the execution's run."""
        return {**self.models, METRICS: ", ".join(self.decisive)} if self.decisive else dict(self.models)

    def record(self) -> dict[str, Any]:
        """JSON values."""
        return {"metrics": dict(self.metrics), "models": dict(self.models), "decisive": list(self.decisive)}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        """The headline of a `record`."""
        return cls(record["metrics"], record["models"], tuple(record.get("decisive", ())))


@dataclass(frozen=True)
class JudgedModel:
    """A model that executions are compared by, with its scores on one task."""

    side: str
    """`best`, `served` or `baseline`."""
    task: str | None
    """The named task; None for the main one."""
    metrics: tuple[str, ...]
    """The first decides which model is the best."""
    lower: bool
    """Whether less is better."""
    row: ScoreRow


@dataclass(frozen=True)
class _Scores:
    """Models that were scored on the same test examples; the fields as in `JudgedModel`."""

    task: str | None
    metrics: tuple[str, ...]
    lower: bool
    rows: tuple[ScoreRow, ...]


def judged_models(store: Store, steps: Sequence[LineageStep]) -> list[JudgedModel]:
    """The best model, the one that would be served and the best baseline of an execution of `steps`, on each task."""
    names = [step.stage for step in _served(steps)]
    evaluations = read_evaluations(store.root, [(step.stage, step.fingerprint) for step in steps])
    return [
        JudgedModel(side, scores.task, scores.metrics[:MOST_METRICS], scores.lower, row)
        for scores in _all_scores(evaluations)
        for side, row in _sides(scores, names).items()
    ]


def headline_of(store: Store, steps: Sequence[LineageStep]) -> Headline:
    """The headline of an execution of `steps`, from what `store` has of them."""
    metrics: dict[str, float] = {}
    models: dict[str, list[str]] = {}
    decisive: dict[str, None] = {}
    for model in judged_models(store, steps):
        models.setdefault(model.side, []).append(model.row.name)
        decisive["/".join(word for word in (model.task, model.metrics[0]) if word)] = None
        for metric in (one for one in model.metrics if one in model.row.scores):
            score = model.row.scores[metric]
            key = "/".join(word for word in (model.side, model.task, metric) if word)
            ends = {"": "mean", "_low": "low", "_high": "high"}
            metrics |= {f"{key}{end}": round(float(score[name]), DIGITS) for end, name in ends.items()}
    served = _served(steps)
    named = ({"served": [served[0].stage]} if served else {}) | models
    costs = _cost(store, steps, served)
    sides = {side: ", ".join(dict.fromkeys(names)) for side, names in named.items()}
    return Headline(metrics | costs, sides, tuple(decisive))


def _served(steps: Sequence[LineageStep]) -> list[LineageStep]:
    """The model that would be served, and the plain-text model that it continues."""
    return [step for step in (final_model(steps), final_backbone(steps)) if step is not None]


def _cost(store: Store, steps: Sequence[LineageStep], served: Sequence[LineageStep]) -> dict[str, float]:
    folders = [store.root / name for name in dict.fromkeys(step.fingerprint for step in steps)]
    records = [Provenance.read(folder) for folder in folders if (folder / RECORD).exists()]
    cost = {
        "cost/seconds": sum(record.environment.seconds for record in records),
        "cost/tokens": float(sum(record.result.get("tokens") or 0 for record in records)),
    }
    if served and (size := served_bytes(store.root / served[0].fingerprint)):
        cost["cost/bytes"] = float(size)
    return cost


def _sides(scores: _Scores, served: Sequence[str]) -> dict[str, ScoreRow]:
    """`best`, `served`, `baseline` → the row of that model, if there is one. `served` are the names of the model that
    would be served and of its backbone."""
    decisive = scores.metrics[0]
    models = [row for row in scores.rows if not row.baseline and decisive in row.scores]
    baselines = [row for row in scores.rows if row.baseline and decisive in row.scores]
    # a prompted model has a row for each number of examples: `gpt, 4 examples`
    own = [row for name in served for row in models if row.name == name or row.name.startswith(f"{name}, ")]
    first = [row for row in own if own[0].name.partition(", ")[0] == row.name.partition(", ")[0]]
    candidates = {"best": models, "served": first, "baseline": baselines}
    sign = -1 if scores.lower else 1
    return {
        side: max(rows, key=lambda row: sign * float(row.scores[decisive]["mean"]))
        for side, rows in candidates.items()
        if rows
    }


def _all_scores(evaluations: Sequence[EvaluationRecord]) -> Iterator[_Scores]:
    """The scores on each task, then those of language models on held-out text."""
    tables = score_tables(evaluations)
    for task in dict.fromkeys(table.task for table in tables):
        own = [table for table in tables if table.task == task]
        decisive = own[0].record.get("verdict_metric", own[0].metrics[0])
        metrics = dict.fromkeys((decisive, *(metric for table in own for metric in table.metrics)))
        rows = {row.name: row for table in own for row in table.rows}
        yield _Scores(task, tuple(metrics), False, tuple(rows.values()))
    language = [
        (name, entry)
        for one in evaluations
        for section in one.sections.values()
        for name in [section.get("perplexity")]
        if name is not None
        for entry in section.get("stages", ())
    ]
    for name in dict.fromkeys(name for name, _ in language):
        rows = {
            entry["stage"]: ScoreRow(entry["stage"], {name: entry["perplexity"], BITS: entry[BITS]})
            for of, entry in language
            if of == name and BITS in entry
        }
        if rows:
            yield _Scores(None, (BITS, name), True, tuple(rows.values()))
