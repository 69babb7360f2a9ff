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
from typing import Any

from pipelines.judging.evaluations.latency import served_bytes
from pipelines.lineage.provenance import RECORD, Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.final_models import LineageStep, final_backbone, final_model
from pipelines.reports.score_tables import EvaluationRecord, ScoreRow, read_evaluations, score_tables

MOST_METRICS = 3
"""Metrics of a task in a headline; the report has all of them."""
BITS = "bits_per_byte"
"""Figure of language models that is comparable between tokenizers."""
SIDES = ("best", "served", "baseline")


@dataclass(frozen=True)
class Headline:
    """What an execution is compared by."""

    metrics: Mapping[str, float]
    """`best/accuracy`, `cost/seconds` … → value."""
    models: Mapping[str, str]
    """`best`, `served`, `baseline` → names of the models that these figures are of."""

    def record(self) -> dict[str, Any]:
        """JSON values."""
        return {"metrics": dict(self.metrics), "models": dict(self.models)}


@dataclass(frozen=True)
class _Scores:
    """Models that were scored on the same test examples."""

    task: str | None
    metrics: tuple[str, ...]
    """The first decides which model is the best."""
    lower: bool
    """Whether less is better."""
    rows: tuple[ScoreRow, ...]


def headline_of(store: Store, steps: Sequence[LineageStep]) -> Headline:
    """The headline of an execution of `steps`, from what `store` has of them."""
    chain = [step for step in (final_model(steps), final_backbone(steps)) if step is not None]
    metrics: dict[str, float] = {}
    models: dict[str, list[str]] = {}
    for scores in _all_scores(read_evaluations(store.root, [(step.stage, step.fingerprint) for step in steps])):
        prefix = f"{scores.task}/" if scores.task else ""
        for side, row in _sides(scores, [step.stage for step in chain]).items():
            models.setdefault(side, []).append(row.name)
            for metric in (one for one in scores.metrics[:MOST_METRICS] if one in row.scores):
                score = row.scores[metric]
                key = f"{side}/{prefix}{metric}"
                metrics |= {key: score["mean"], f"{key}_low": score["low"], f"{key}_high": score["high"]}
    served = {"served": [chain[0].stage]} if chain else {}
    named = {side: ", ".join(dict.fromkeys(names)) for side, names in (served | models).items()}
    return Headline(metrics | _cost(store, steps, chain), named)


def _cost(store: Store, steps: Sequence[LineageStep], chain: Sequence[LineageStep]) -> dict[str, float]:
    folders = [store.root / name for name in dict.fromkeys(step.fingerprint for step in steps)]
    records = [Provenance.read(folder) for folder in folders if (folder / RECORD).exists()]
    cost = {
        "cost/seconds": sum(record.environment.seconds for record in records),
        "cost/tokens": float(sum(record.result.get("tokens") or 0 for record in records)),
    }
    if chain and (size := served_bytes(store.root / chain[0].fingerprint)):
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
        (section["perplexity"], entry)
        for one in evaluations
        for section in one.sections.values()
        if "perplexity" in section
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
