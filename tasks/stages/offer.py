"""What the registry says of the final model of an execution: its scores as tags, and a description of its version.

`int8` of the recipe `regime` (seed 0) on the dataset `reviews`, from the commit 1a2b3c4d5e6f.

Compressed from `small` 9e81d004.

| | accuracy | macro-F1 |
|---|---|---|
| TF-IDF + logistic regression | 0.641 [0.620, 0.662] | … |
| int8 | 0.650 [0.630, 0.680] | … |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.lineage.provenance import Provenance
from pipelines.recipe.kinds import Kind
from pipelines.reports.elements.wording import metric_name
from pipelines.reports.score_tables import ScoreRow, ScoreTable
from pipelines.safety.markdown import inert

TAGGED = 3
"""Most metrics of a task that become tags: people filter versions by tags, and the record has every number."""


@dataclass(frozen=True)
class Offer:
    """What is registered with a model."""

    scores: Mapping[str, float]
    """`accuracy`, or `rte/accuracy` on a named task → mean over test examples and seeds."""
    description: str
    """Markdown."""


def offer_of(final: Provenance, dataset: str, parents: Mapping[str, Provenance], tables: Sequence[ScoreTable]) -> Offer:
    """What to say of `final`, the final model of an execution on `dataset`.

    `parents` are the records of its parents by role; `tables` are the score tables of the execution.
    """
    commit = f", from the commit {final.environment.commit[:12]}" if final.environment.commit else ""
    recipe, stage = inert(final.recipe), inert(final.stage)
    paragraphs = [f"{stage} of the recipe {recipe} (seed {final.seed}) on the dataset {inert(dataset)}{commit}."]
    if Kind(final.kind) is Kind.COMPRESS and "start" in parents:
        teachers = [
            f"taught by {inert(one.stage)} {fingerprint[:8]}"
            for role, one in parents.items()
            if role.startswith("teacher") and (fingerprint := one.fingerprint)
        ]
        start = f"{inert(parents['start'].stage)} {parents['start'].fingerprint[:8]}"
        paragraphs.append(f"Compressed from {', '.join([start, *teachers])}.")
    scores: dict[str, float] = {}
    for table in tables:
        row = next((row for row in table.rows if not row.baseline and row.name == final.stage), None)
        if row is not None:
            prefix = f"{table.task}/" if table.task else ""
            shown = [metric for metric in table.metrics if metric in row.scores]
            scores |= {prefix + metric: float(row.scores[metric]["mean"]) for metric in shown[:TAGGED]}
            paragraphs.append(_markdown(table, row, shown))
    return Offer(scores, "\n\n".join(paragraphs))


def _markdown(table: ScoreTable, row: ScoreRow, metrics: Sequence[str]) -> str:
    """The model and the baselines, with 95 % intervals."""
    title = f"{inert(table.task)}: " if table.task else ""
    head = [f"| {title}test scores | {' | '.join(metric_name(metric) for metric in metrics)} |"]
    rows = [one for one in table.rows if one.baseline] + [row]
    lines = [f"| {inert(one.name)} | {' | '.join(_score(one, metric) for metric in metrics)} |" for one in rows]
    return "\n".join([*head, f"|---{'|---' * len(metrics)}|", *lines])


def _score(row: ScoreRow, metric: str) -> str:
    if metric not in row.scores:
        return "–"
    score = row.scores[metric]
    return f"{score['mean']:.3f} [{score['low']:.3f}, {score['high']:.3f}]"
