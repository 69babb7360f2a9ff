"""Routes to a smaller model: what each costs to serve and how well it answers, and which is worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.judging.front import Choice, ServedForm, choose, not_dominated
from pipelines.judging.limits import Limits, megabytes
from pipelines.messages.translation import message, translatable
from pipelines.reports.elements.axes import count
from pipelines.reports.elements.front import draw_front
from pipelines.reports.elements.table import Table, difference, estimate, number, text
from pipelines.reports.elements.wording import capital, measured_in, metric_name
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.sections import Report, Section

WITHIN = "within"
"""Parameter of an execution with the limits that were requested."""
MISSED = {
    "size": translatable("too many megabytes"),
    "time": translatable("too many milliseconds"),
    "score": translatable("too many points"),
}
"""Limit → what a form has that is beyond it."""


class CompressionSection(Section, name="compression"):
    """Score against size and time of every served form, the front drawn, and the form to serve."""

    title = translatable("Smaller models")

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
                message("Every served form"),
                (
                    text("stage", message("Route")),
                    text("runtime", message("Runtime")),
                    number("bytes", message("On disk"), megabytes),
                    number("ms", message("ms, 1 example"), "{:.2f}".format),
                    number("batch", message("ms, 32 examples"), "{:.1f}".format),
                    number("operations", message("Operations"), count),
                    estimate("score", capital(metric_name(metric)), metric),
                    difference("difference", _against_the_teacher(metric), metric),
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
                        "mark": message("serve") if one == chosen else message("front") if one in best else None,
                    }
                    for record, one in zip(content["forms"], forms, strict=True)
                ],
            )
        ]


def decision(forms: Sequence[ServedForm], metric: str, limits: Limits, choice: Choice) -> str:
    """One sentence: what to serve, what it costs and loses, or what is missing to it; the first of `forms` is the
    teacher."""
    one, teacher = choice.form, forms[0]
    facts = message(
        "{size}, {time}, {difference} {unit} ({low} to {high})",
        size=megabytes(one.bytes),
        time=_milliseconds(one.milliseconds),
        difference=written(one.difference, metric),
        unit=measured_in(metric),
        low=written(one.difference_low, metric),
        high=written(one.difference_high, metric),
    )
    if not choice.within:
        missed = message(" and ").join(message(MISSED[name]) for name in choice.missed)
        facts = message("{facts}, {missed}", facts=facts, missed=missed)
    if one != teacher:
        facts = message(
            "{facts}; {smaller}x smaller and {faster}x faster than the teacher in {runtime}",
            facts=facts,
            smaller=f"{teacher.bytes / one.bytes:.1f}",
            faster=f"{teacher.milliseconds / one.milliseconds:.1f}",
            runtime=teacher.runtime,
        )
    if not choice.within:
        return message(
            "Nothing is within {limits}; nearest is {form}: {facts}.", limits=limits, form=one.title, facts=facts
        )
    if limits.loss is not None and one.difference_low < -limits.loss - 1e-9:
        loss = written(-one.difference_low, metric).lstrip("+")
        facts = message("{facts}; the test cannot exclude a loss of {loss}", facts=facts, loss=loss)
    return message("Serve {form}: {facts}.", form=one.title, facts=facts)


def _against_the_teacher(metric: str) -> str:
    return message("{unit} against the teacher", unit=capital(measured_in(metric)))


def _milliseconds(value: float) -> str:
    return f"{value:.1f} ms" if value >= 1 else f"{value:.2g} ms"
