"""Routes to a smaller model: what each costs to serve and how well it answers, and which is worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.judging.front import Choice, ServedForm, choose, not_dominated
from pipelines.judging.limits import Limits, megabytes
from pipelines.reports.elements.axes import count
from pipelines.reports.elements.front import draw_front
from pipelines.reports.elements.table import Table, difference, estimate, number, text
from pipelines.reports.elements.wording import capital, measured_in, metric_name
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.sections import Report, Section

WITHIN = "within"
"""Parameter of an execution with the limits that were requested."""
NAMES = {"size": "megabytes", "time": "milliseconds", "score": "points"}


class CompressionSection(Section, name="compression"):
    """Score against size and time of every served form, the front drawn, and the form to serve."""

    title = "Smaller models"

    def section_data(self, report: Report) -> dict[str, Any] | None:
        sections = report.sections("forms")
        if not sections:
            return None
        _, section = sections[-1]
        forms = [ServedForm.read(one) for one in section["forms"]]
        requested = report.execution.get("parameters", {}).get(WITHIN)
        limits = Limits.parse(requested) if requested else None
        choice = choose(forms, limits) if limits is not None else None
        return {
            **section,
            "read": forms,
            "limits": limits,
            "choice": choice,
            "sentence": decision(forms, section["metric"], limits, choice) if limits and choice else None,
            "drawn": draw_front(forms, section["metric"], limits, choice.form if choice else None),
        }

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        return [content["sentence"]] if content["sentence"] else []

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        metric, forms = content["metric"], content["read"]
        best = not_dominated(forms)
        chosen = content["choice"].form if content["choice"] else None
        return [
            Table(
                "forms",
                "Every served form",
                (
                    text("stage", "Route"),
                    text("runtime", "Runtime"),
                    number("bytes", "On disk", megabytes),
                    number("ms", "ms, 1 example", "{:.2f}".format),
                    number("batch", "ms, 32 examples", "{:.1f}".format),
                    number("operations", "Operations", count),
                    estimate("score", capital(metric_name(metric)), metric),
                    difference("difference", f"{capital(measured_in(metric))} against the teacher", metric),
                    text("mark", ""),
                ),
                [
                    {
                        "stage": record["stage"],
                        "runtime": record["runtime"],
                        "bytes": one.bytes,
                        "ms": one.milliseconds,
                        "batch": one.milliseconds_of_a_batch,
                        "operations": one.operations,
                        "score": record["score"],
                        "difference": record["difference"],
                        "mark": "serve" if one == chosen else "front" if one in best else None,
                    }
                    for record, one in zip(content["forms"], forms, strict=True)
                ],
            )
        ]


def decision(forms: Sequence[ServedForm], metric: str, limits: Limits, choice: Choice) -> str:
    """One sentence: what to serve, what it costs and loses, or what is missing to it; the first of `forms` is the
    teacher."""
    one, teacher = choice.form, forms[0]
    lost = f"{written(one.difference, metric)} {measured_in(metric)}"
    ends = f"{written(one.difference_low, metric)} to {written(one.difference_high, metric)}"
    facts = f"{megabytes(one.bytes)}, {_milliseconds(one.milliseconds)}, {lost} ({ends})"
    times = f"{teacher.bytes / one.bytes:.1f}x smaller and {teacher.milliseconds / one.milliseconds:.1f}x faster"
    compared = "" if one == teacher else f"; {times} than the teacher in {teacher.runtime}"
    if choice.within:
        risk = ""
        if limits.loss is not None and one.difference_low < -limits.loss - 1e-9:
            risk = f"; the test cannot exclude a loss of {written(-one.difference_low, metric).lstrip('+')}"
        return f"Serve {one.title}: {facts}{compared}{risk}."
    missed = " and ".join(NAMES[name] for name in choice.missed)
    return f"Nothing is within {limits}; nearest is {one.title}: {facts}, too many {missed}{compared}."


def _milliseconds(value: float) -> str:
    return f"{value:.1f} ms" if value >= 1 else f"{value:.2g} ms"
