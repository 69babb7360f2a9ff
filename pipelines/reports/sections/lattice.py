"""The effect of every stage before fine-tuning, and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.reports.elements.axes import count
from pipelines.reports.elements.hasse import draw_lattice
from pipelines.reports.elements.label_curves import draw_label_curves
from pipelines.reports.elements.path_costs import factor_costs, path_costs
from pipelines.reports.elements.table import Table, difference, estimate, number, text, verdict
from pipelines.reports.elements.wording import capital, measured_in, metric_name, p_value
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.sections import Report, Section

NEITHER = "neither alone"
"""Neither more seeds nor more items alone can settle the verdict: the variance of the other is too large."""


class LatticeSection(Section, name="lattice"):
    """Every subset of the stages before fine-tuning: effects, costs, and sample sizes that would settle a verdict."""

    title = "Stage lattice"

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
            ends = f"{written(effect['low'], metric)} to {written(effect['high'], metric)}"
            gained = f"{written(effect['difference'], metric)} {measured_in(metric)} ({ends})"
            words = {
                "pays": f"The stage {factor} pays: {gained}",
                "does not pay": f"The stage {factor} does harm: {gained}",
                "cannot tell": f"The test cannot tell whether the stage {factor} pays: {gained}",
            }[effect["verdict"]]
            if (cost := content["factor_costs"].get(factor)) is not None:
                words += f", for {count(cost.tokens)} tokens and {cost.minutes:.1f} minutes"
            needed = settled_by(effect)
            if needed:
                enough = needed if needed != NEITHER else "neither more seeds nor more test items alone"
                words += f"; {enough} would settle it"
            lines.append(f"{words}.")
        return lines

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        metric = content["metric"]
        gain = capital(measured_in(metric))
        return [
            Table(
                "stages",
                "Effect and cost of each stage",
                (
                    text("stage", "Stage"),
                    difference("effect", gain, metric),
                    number("p", "p, Holm", p_value),
                    number("tokens", "Tokens", count),
                    number("minutes", "Minutes", "{:.1f}".format),
                    number("rate", "Gain per minute", lambda value: written(value, metric)),
                    verdict("verdict"),
                    text("settled", "Settled by"),
                ),
                [self._stage(content, effect) for effect in content["effects"] if len(effect["of"]) == 1],
            ),
            Table(
                "paths",
                "Every path",
                (
                    text("path", "Stages before fine-tuning"),
                    text("stage", "Fine-tuned stage"),
                    number("labelled", "Labelled examples", "{:,}".format),
                    number("seeds", "Seeds"),
                    estimate("score", capital(metric_name(metric)), metric),
                    number("tokens", "Tokens before", count),
                    number("minutes", "Minutes before", "{:.1f}".format),
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
                "Effect of a stage on each path",
                (
                    text("before", "Path"),
                    text("adds", "Added stage"),
                    difference("effect", gain, metric),
                    number("p", "p, Holm", p_value),
                    verdict("verdict"),
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
                "Interactions of stages",
                (
                    text("of", "Stages"),
                    difference("effect", gain, metric),
                    number("p", "p, Holm", p_value),
                    text("meaning", "Meaning"),
                ),
                [
                    {
                        "of": " × ".join(effect["of"]),
                        "effect": effect,
                        "p": effect["p_holm"],
                        "meaning": MEANINGS[effect["verdict"]],
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
    "pays": "each gains more with the other",
    "does not pay": "each gains less with the other",
    "cannot tell": "cannot tell",
}


def settled_by(effect: Mapping[str, Any]) -> str:
    """The number of seeds, or of items, that would settle a verdict of "cannot tell"; empty when it is settled."""
    needed = effect.get("settled_by")
    if needed is None:
        return ""
    words = [f"{needed['seeds']} seeds"] if needed["seeds"] else []
    words += [f"{needed['items']:,} test items"] if needed["items"] else []
    return " or ".join(words) or NEITHER


def _path(through: Sequence[str]) -> str:
    return " + ".join(through) or "from scratch"
