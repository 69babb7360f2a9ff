"""Score tables as the report shows them, and each step of a ladder in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.lineage.weights import PLAIN_TEXT, weight_history
from pipelines.messages.translation import message, translatable
from pipelines.reports.elements.scores import PlottedScore, draw_scores
from pipelines.reports.elements.table import Table, difference, estimate, number, text, verdict
from pipelines.reports.elements.wording import capital, measured_in, metric_name, p_value, score, sequence, span
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.score_tables import ScoreRow, ScoreTable

ADDED = {
    "pretrain": translatable("pre-training on general text"),
    "adapt_domain": translatable("further pre-training on the domain"),
    "adapt_task": translatable("further pre-training on the task's own text"),
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
        {"model": f"{row.title} ({row.note})" if row.note else row.title, "seeds": row.seeds, **row.scores}
        for row in table.rows
    ]
    tables = {
        "scores": Table(
            f"{name}-scores",
            message("Scores"),
            (
                text("model", message("Model")),
                number("seeds", message("Seeds")),
                *(estimate(metric, capital(metric_name(metric)), metric) for metric in table.metrics),
            ),
            rows,
        )
    }
    if ladder:
        steps = [
            *ladder,
            *([{"what": message("All changes together"), "measured": whole[verdict_on], **whole}] if whole else []),
        ]
        tables["ladder"] = Table(
            f"{name}-ladder",
            message("Stages that pay"),
            (
                text("what", message("Change")),
                verdict("verdict"),
                difference("measured", capital(measured_in(verdict_on)), verdict_on),
                number("p_holm", message("p, Holm"), p_value),
                text("compared", message("Compared")),
                number("randomisation", message("p, these models"), p_value),
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


def sentences(comparison: Mapping[str, Any], served: str | None = None) -> list[str]:
    """The result of a comparison in sentences, the decision first.

    `served` is the model that the execution registers: whether to serve it is the decision, if it was compared.
    """
    metric = comparison["verdict_on"]
    models = [row for row in comparison["rows"] if not row.baseline]
    best = max(models, key=lambda row: float(row.scores[metric]["mean"]))
    baselines = [row for row in comparison["rows"] if row.baseline and row.note and metric in row.scores]
    baseline = max(baselines, key=lambda row: float(row.scores[metric]["mean"]), default=None)
    chosen = next((row for row in models if row.name == served and metric in row.scores), None)
    lines = []
    if chosen is not None:
        advice = "Serve {model}: {result}."
        if baseline is not None:
            advice = ADVICE[_standing(chosen.scores[metric], baseline.scores[metric])]
        lines.append(message(advice, model=chosen.title, result=_result(comparison, chosen, baseline)))
    if chosen is not best:
        best_of = (
            "The best prompt is {model}: {result}."
            if comparison["prompted"]
            else "The best model is {model}: {result}."
        )
        # the baseline was named by the sentence before
        against = baseline if chosen is None else None
        lines.append(message(best_of, model=best.title, result=_result(comparison, best, against)))
    groups: dict[str, list[str]] = {}
    for step in comparison["ladder"]:
        groups.setdefault(step["verdict"], []).append(step["what"])
    lines += [message(GROUPS[word], changes=sequence(groups[word])) for word in GROUPS if word in groups]
    whole = comparison["whole"]
    if whole:
        measured = whole["measured"]
        lines.append(
            message(
                "From {first} to {last}: {difference} {unit} ({low} to {high}).",
                first=whole["from"],
                last=whole["to"],
                difference=written(measured["difference"], metric),
                unit=measured_in(metric),
                low=written(measured["low"], metric),
                high=written(measured["high"], metric),
            )
        )
    return lines


ADVICE = {
    "above": translatable("Serve {model}: {result}."),
    "level": translatable("Do not serve {model} yet: {result}."),
    "below": translatable("Do not serve {model}: {result}."),
}
"""Where a model stands next to a baseline that somebody would use instead → the decision."""
GROUPS = {
    "pays": translatable("Pays: {changes}."),
    "does not pay": translatable("Does harm: {changes}."),
    "better": translatable("Scores higher: {changes}."),
    "worse": translatable("Scores lower: {changes}."),
    "cannot tell": translatable("No significant difference: {changes}."),
}
"""Verdict → the sentence about the steps of a ladder that have it."""


def _standing(model: Mapping[str, float], baseline: Mapping[str, float]) -> str:
    """Whether the intervals of two scores exclude each other: `above`, `level`, `below`."""
    if model["low"] > baseline["high"]:
        return "above"
    return "below" if model["high"] < baseline["low"] else "level"


def _result(comparison: Mapping[str, Any], row: ScoreRow, baseline: ScoreRow | None) -> str:
    """The score of a model, and what it is worth beside a baseline."""
    metric = comparison["verdict_on"]
    reached = row.scores[metric]
    examples = message("{examples} test examples", examples=comparison["examples"])
    if comparison["task"]:
        examples = message(
            "{examples} test examples of {task}", examples=comparison["examples"], task=comparison["task"]
        )
    values = {
        "score": score(reached["mean"], metric),
        "examples": examples,
        "interval": span(reached["low"], reached["high"], metric),
    }
    # accuracy is the share of correct answers, so the sentence needs no name for it
    result = (
        message("{score} of {examples} correct (95 % interval {interval})", **values)
        if metric == "accuracy"
        else message("{score} {metric} on {examples} (95 % interval {interval})", metric=metric_name(metric), **values)
    )
    if baseline is None:
        return result
    other = baseline.scores[metric]
    against = {
        "above": translatable("{result}, {by} {unit} above {baseline} ({score}, {interval})"),
        "below": translatable("{result}, {by} {unit} below {baseline} ({score}, {interval})"),
        "level": translatable("{result}, not clearly better than {baseline} ({score}, {interval})"),
    }
    return message(
        against[_standing(reached, other)],
        result=result,
        by=written(abs(reached["mean"] - other["mean"]), metric).removeprefix("+"),
        unit=measured_in(metric),
        baseline=baseline.title,
        score=score(other["mean"], metric),
        interval=span(other["low"], other["high"], metric),
    )


def _plotted_metrics(table: ScoreTable, verdict_on: str) -> list[str]:
    """The metric of the verdicts and one more; the table has all of them."""
    return [verdict_on, *[metric for metric in table.metrics if metric != verdict_on][:1]]


def _plot(table: ScoreTable, metric: str) -> dict[str, Any]:
    rows = []
    for row in table.rows:
        if metric in row.scores:
            estimated = row.scores[metric]
            mean, low, high = estimated["mean"], estimated["low"], estimated["high"]
            rows.append(PlottedScore(row.title, mean, low, high, tuple(estimated["per_seed"]), row.baseline))
    return {"title": capital(metric_name(metric)), "svg": draw_scores(rows, metric)}


def _change(step: Mapping[str, Any], execution: Mapping[str, Any], records: Records) -> str:
    """The change between two stages of a ladder: training on more text if that is all, else the names of both."""
    before, after = (_record(step[side], execution, records) for side in ("from", "to"))
    if before and after and _parts(before) == _parts(after):
        behind, ahead = (_texts(model["fingerprint"], records) for model in (before, after))
        if ahead[: len(behind)] == behind and len(ahead) > len(behind):
            return message(" and ").join(dict.fromkeys(message(ADDED[kind]) for kind, _ in ahead[len(behind) :]))
    return message("{new} instead of {old}", new=step["to"], old=step["from"])


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
