"""Score tables as the report shows them, and each step of a ladder in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.lineage.weights import PLAIN_TEXT, weight_history
from pipelines.reports.elements.scores import PlottedScore, draw_scores
from pipelines.reports.elements.table import Table, difference, estimate, number, text, verdict
from pipelines.reports.elements.wording import capital, measured_in, metric_name, p_value, score, span
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.score_tables import ScoreTable

ADDED = {
    "pretrain": "pre-training on general text",
    "adapt_domain": "further pre-training on the domain",
    "adapt_task": "further pre-training on the task's own text",
}
"""What a stage on plain text adds to the models that continue it, by its kind."""
PARTS = ("head", "objective", "strategy", "corruption")
"""Settings of a stage: fine-tuned models that differ in one of them differ in more than their start."""
Records = Mapping[str, Mapping[str, Any]]


def compare(table: ScoreTable, execution: Mapping[str, Any], records: Records) -> dict[str, Any]:
    """The template's values for one score table."""
    record = table.record
    verdict_on = record.get("verdict_metric", table.metrics[0])
    ladder = [
        {"what": _change(step, execution, records), "measured": step[verdict_on], **step}
        for step in record.get("ladder", ())
    ]
    whole = record.get("whole_ladder")
    return {
        "stage": table.stage,
        "task": table.task,
        "prompted": table.prompted,
        "calibrated": record.get("calibrated", False),
        "examples": record["examples"],
        "resamples": record["resamples"],
        "verdict_on": verdict_on,
        "metrics": table.metrics,
        "rows": table.rows,
        "tables": _tables(table, ladder, whole, verdict_on),
        "plots": [_plot(table, metric) for metric in _plotted_metrics(table, verdict_on)],
        "ladder": ladder,
        "whole": {"measured": whole[verdict_on], **whole} if whole else None,
    }


def _tables(
    table: ScoreTable, ladder: Sequence[Mapping[str, Any]], whole: Mapping[str, Any] | None, verdict_on: str
) -> dict[str, Table]:
    """The scores of every model, and the steps of the ladder where there is one."""
    name = f"{table.stage}-{table.section}"
    rows = [
        {"model": f"{row.name} ({row.note})" if row.note else row.name, "seeds": row.seeds, **row.scores}
        for row in table.rows
    ]
    tables = {
        "scores": Table(
            f"{name}-scores",
            "Scores",
            (
                text("model", "Model"),
                number("seeds", "Seeds"),
                *(estimate(metric, capital(metric_name(metric)), metric) for metric in table.metrics),
            ),
            rows,
        )
    }
    if ladder:
        steps = [
            *ladder,
            *([{"what": "All changes together", "measured": whole[verdict_on], **whole}] if whole else []),
        ]
        tables["ladder"] = Table(
            f"{name}-ladder",
            "Stages that pay",
            (
                text("what", "Change"),
                text("compared", "Compared"),
                difference("measured", capital(measured_in(verdict_on)), verdict_on),
                number("p_holm", "p, Holm", p_value),
                verdict("verdict"),
                number("randomisation", "p, these models", p_value),
                *([number("mcnemar", "McNemar", p_value)] if verdict_on == "accuracy" else []),
            ),
            [
                {
                    **step,
                    **step.get("these_models", {}),
                    "what": capital(step["what"]),
                    "compared": f"{step['from']} → {step['to']}",
                }
                for step in steps
            ],
        )
    return tables


def sentences(comparison: Mapping[str, Any]) -> list[str]:
    """The result of a comparison in sentences, the decision first."""
    metric = comparison["verdict_on"]
    models = [row for row in comparison["rows"] if not row.baseline]
    best = max(models, key=lambda row: float(row.scores[metric]["mean"]))
    reached = best.scores[metric]
    where = f"{comparison['examples']} test examples" + (f" of {comparison['task']}" if comparison["task"] else "")
    # accuracy is the share of correct answers, so the sentence needs no name for it
    result = "answers {} of {} correctly" if metric == "accuracy" else f"reaches {{}} {metric_name(metric)} on {{}}"
    groups: dict[str, list[str]] = {}
    for step in comparison["ladder"]:
        groups.setdefault(step["verdict"], []).append(step["what"])
    words = {
        "pays": "Pays: {}.",
        "does not pay": "Does harm: {}.",
        "better": "Scores higher: {}.",
        "worse": "Scores lower: {}.",
        "cannot tell": "No significant difference: {}.",
    }
    lines = [
        f"The best {'prompt' if comparison['prompted'] else 'model'}, {best.name}, "
        f"{result.format(score(reached['mean'], metric), where)} "
        f"(95 % interval {span(reached['low'], reached['high'], metric)})"
        + "".join(
            _against(row.name, row.scores[metric], reached, metric)
            for row in comparison["rows"]
            if row.baseline and row.note and metric in row.scores
        )
        + "."
    ]
    lines += [words[group].format("; ".join(groups[group])) for group in words if group in groups]
    whole = comparison["whole"]
    if whole:
        measured = whole["measured"]
        lines.append(
            f"From {whole['from']} to {whole['to']}: {written(measured['difference'], metric)} {measured_in(metric)} "
            f"({written(measured['low'], metric)} to {written(measured['high'], metric)})."
        )
    return lines


def _against(name: str, baseline: Mapping[str, float], best: Mapping[str, float], metric: str) -> str:
    """What the best model is worth beside a baseline that somebody would use instead."""
    has = f"{name} ({score(baseline['mean'], metric)}, {span(baseline['low'], baseline['high'], metric)})"
    by = written(abs(best["mean"] - baseline["mean"]), metric).removeprefix("+")
    if best["low"] > baseline["high"]:
        return f", {by} {measured_in(metric)} above {has}"
    if best["high"] < baseline["low"]:
        return f", {by} {measured_in(metric)} below {has}"
    return f", not clearly better than {has}"


def _plotted_metrics(table: ScoreTable, verdict_on: str) -> list[str]:
    """The metric of the verdicts and one more; the table has all of them."""
    return [verdict_on, *[metric for metric in table.metrics if metric != verdict_on][:1]]


def _plot(table: ScoreTable, metric: str) -> dict[str, Any]:
    rows = []
    for row in table.rows:
        if metric in row.scores:
            estimated = row.scores[metric]
            mean, low, high = estimated["mean"], estimated["low"], estimated["high"]
            rows.append(PlottedScore(row.name, mean, low, high, tuple(estimated["per_seed"]), row.baseline))
    return {"title": capital(metric_name(metric)), "svg": draw_scores(rows, metric)}


def _change(step: Mapping[str, Any], execution: Mapping[str, Any], records: Records) -> str:
    """The change between two stages of a ladder: training on more text if that is all, else the names of both."""
    before, after = (_record(step[side], execution, records) for side in ("from", "to"))
    if before and after and _parts(before) == _parts(after):
        behind, ahead = (_texts(model["fingerprint"], records) for model in (before, after))
        if ahead[: len(behind)] == behind and len(ahead) > len(behind):
            return " and ".join(dict.fromkeys(ADDED[kind] for kind, _ in ahead[len(behind) :]))
    return f"{step['to']} instead of {step['from']}"


def _record(stage: str, execution: Mapping[str, Any], records: Records) -> Mapping[str, Any] | None:
    """The record of a stage's first model."""
    return next((records.get(one["fingerprint"]) for one in execution["steps"] if one["stage"] == stage), None)


def _parts(record: Mapping[str, Any]) -> list[Any]:
    """The names of the components that a model was fine-tuned with."""
    stage = record["identity"].get("stage", {})
    return [_names(stage.get(part)) for part in PARTS]


def _names(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value.get("name")
    return [_names(one) for one in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def _texts(fingerprint: str, records: Records) -> list[tuple[str, str]]:
    """Kind and fingerprint of the stages on plain text that a model's weights went through, in order."""
    read = [record for record in weight_history(fingerprint, records) if record["kind"] in PLAIN_TEXT]
    return [(record["kind"], record["fingerprint"]) for record in reversed(read)]
