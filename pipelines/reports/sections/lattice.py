"""The effect of every stage before fine-tuning, and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.messages.translation import message, translatable
from pipelines.reports.elements.axes import count
from pipelines.reports.elements.hasse import draw_lattice
from pipelines.reports.elements.label_curves import draw_label_curves
from pipelines.reports.elements.path_costs import factor_costs, path_costs
from pipelines.reports.elements.table import Table, difference, estimate, number, text, verdict
from pipelines.reports.elements.wording import capital, measured_in, metric_name, p_value
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.sections import Report, Section

NEITHER = translatable("neither alone")
"""Neither more seeds nor more items alone can settle the verdict: the variance of the other is too large."""


class LatticeSection(Section, name="lattice"):
    """Every subset of the stages before fine-tuning: effects, costs, and sample sizes that would settle a verdict."""

    title = translatable("Stage lattice")

    def section_data(self, report: Report) -> dict[str, Any] | None:
        sections = report.sections("paths")
        if not sections:
            return None
        stage, section = sections[-1]
        dataset = next(one.dataset for one in report.evaluations if one.stage == stage)
        stages = [path["stage"] for path in section["paths"]]
        steps = report.execution["steps"]
        metric = section["metric"]
        return {
            **section,
            "drawn": draw_lattice(section["paths"], section["steps"], metric),
            "curves": draw_label_curves(section["sizes"], dataset["texts"]["train"], metric)
            if len(section["sizes"]) > 1
            else None,
            "costs": path_costs(stages, steps, report.records),
            "factor_costs": factor_costs(section["paths"], steps, report.records),
            "train": dataset["texts"]["train"],
        }

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        metric = content["metric"]
        lines = []
        for effect in content["effects"]:
            if len(effect["of"]) > 1:
                continue
            (factor,) = effect["of"]
            gained = message(
                "{difference} {unit} ({low} to {high})",
                difference=written(effect["difference"], metric),
                unit=measured_in(metric),
                low=written(effect["low"], metric),
                high=written(effect["high"], metric),
            )
            words = message(EFFECTS[effect["verdict"]], stage=factor, gain=gained)
            if (cost := content["factor_costs"].get(factor)) is not None:
                words += message(
                    ", for {tokens} tokens and {minutes:.1f} minutes", tokens=count(cost.tokens), minutes=cost.minutes
                )
            if needed := settled_by(effect):
                words += (
                    message("; {needed} would settle it", needed=needed)
                    if needed != message(NEITHER)
                    else message("; neither more seeds nor more test items alone would settle it")
                )
            lines.append(message("{sentence}.", sentence=words))
        return lines

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        metric = content["metric"]
        gain = capital(measured_in(metric))
        return [
            Table(
                "stages",
                message("Effect and cost of each stage"),
                (
                    text("stage", message("Stage")),
                    verdict("verdict"),
                    difference("effect", gain, metric),
                    number("p", message("p, Holm"), p_value),
                    number("tokens", message("Tokens"), count),
                    number("minutes", message("Minutes"), "{:.1f}".format),
                    number("rate", message("Gain per minute"), lambda value: written(value, metric)),
                    text("settled", message("Settled by")),
                ),
                [self._stage(content, effect) for effect in content["effects"] if len(effect["of"]) == 1],
            ),
            Table(
                "paths",
                message("Every path"),
                (
                    text("path", message("Stages before fine-tuning")),
                    text("stage", message("Fine-tuned stage")),
                    number("labelled", message("Labelled examples"), "{:,}".format),
                    number("seeds", message("Seeds")),
                    estimate("score", capital(metric_name(metric)), metric),
                    number("tokens", message("Tokens before"), count),
                    number("minutes", message("Minutes before"), "{:.1f}".format),
                ),
                [
                    {
                        "path": _path(path["through"]),
                        "stage": path["stage"],
                        "labelled": size["labelled"] or content["train"],
                        "seeds": len(path["seeds"]),
                        "score": path["score"],
                        "tokens": cost.tokens if (cost := content["costs"].get(path["stage"])) else None,
                        "minutes": cost.minutes if cost else None,
                    }
                    for size in reversed(content["sizes"])
                    for path in size["paths"]
                ],
            ),
            Table(
                "steps",
                message("Effect of a stage on each path"),
                (
                    text("before", message("Path")),
                    text("adds", message("Added stage")),
                    verdict("verdict"),
                    difference("effect", gain, metric),
                    number("p", message("p, Holm"), p_value),
                ),
                [
                    {
                        "before": _path(next(p["through"] for p in content["paths"] if p["stage"] == step["from"])),
                        "adds": step["adds"],
                        "effect": step,
                        "p": step["p_holm"],
                        "verdict": step["verdict"],
                    }
                    for step in content["steps"]
                ],
            ),
            Table(
                "interactions",
                message("Interactions of stages"),
                (
                    text("of", message("Stages")),
                    difference("effect", gain, metric),
                    number("p", message("p, Holm"), p_value),
                    text("meaning", message("Meaning")),
                ),
                [
                    {
                        "of": " × ".join(effect["of"]),
                        "effect": effect,
                        "p": effect["p_holm"],
                        "meaning": message(MEANINGS[effect["verdict"]]),
                    }
                    for effect in content["effects"]
                    if len(effect["of"]) > 1
                ],
            ),
        ]

    def _stage(self, content: Mapping[str, Any], effect: Mapping[str, Any]) -> dict[str, Any]:
        (factor,) = effect["of"]
        cost = content["factor_costs"].get(factor)
        return {
            "stage": factor,
            "effect": effect,
            "p": effect["p_holm"],
            "tokens": cost.tokens if cost else None,
            "minutes": cost.minutes if cost else None,
            # a stage that starts from a checkpoint may cost nothing here
            "rate": effect["difference"] / cost.minutes if cost and cost.minutes > 0.05 else None,
            "verdict": effect["verdict"],
            "settled": settled_by(effect) or None,
        }


MEANINGS = {
    "pays": translatable("each gains more with the other"),
    "does not pay": translatable("each gains less with the other"),
    "cannot tell": translatable("cannot tell"),
}
EFFECTS = {
    "pays": translatable("The stage {stage} pays: {gain}"),
    "does not pay": translatable("The stage {stage} does harm: {gain}"),
    "cannot tell": translatable("The test cannot tell whether the stage {stage} pays: {gain}"),
}


def settled_by(effect: Mapping[str, Any]) -> str:
    """The number of seeds, or of items, that would settle a verdict of "cannot tell"; empty when it is settled."""
    needed = effect.get("settled_by")
    if needed is None:
        return ""
    words = [message("{seeds} seeds", seeds=needed["seeds"])] if needed["seeds"] else []
    words += [message("{items:,} test items", items=needed["items"])] if needed["items"] else []
    return message(" or ").join(words) or message(NEITHER)


def _path(through: Sequence[str]) -> str:
    return " + ".join(through) or message("from scratch")
