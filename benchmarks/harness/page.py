"""docs/performance.md: the records, compared with the goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from benchmarks.checkouts import ROOT
from benchmarks.harness import record
from benchmarks.harness.benchmark import Benchmark
from benchmarks.harness.plot import draw
from benchmarks.harness.record import Figure, Goal, Plot, Record, Verdict
from pipelines.lineage.hardware import ROUNDING

PAGE = ROOT / "docs" / "performance.md"
HEAD = """\
# Performance

Measurements and their goals. `make bench` measures all benchmarks on the machine at hand, `make bench NAME=…` one of
them; each writes a record to `benchmarks/records/`, from which this page is generated. Do not edit it by hand.

- Variants take turns (A B C A B C …). Ratios are computed per round; the page shows their median, with the 95 %
  interval of the median over rounds in brackets. Above 1, Cursus is faster.
- Seconds are wall-clock time; the column *processor time* has the same ratio in processor seconds, which other load
  affects less.
- The *matmul floor* is the time of only the matrix products of a step, forward and both backward ones, with the same
  shapes, type and threads, in the same rounds: no training loop can be faster on this machine.
- A goal is *met* where the whole interval is within it, *missed* where nothing of the interval is, and otherwise
  *undecided*: more rounds, or a quieter machine, would tell.
- A record notes when the machine was busy with other work: its figures are then less reliable.
- A figure is that of one kind of processor, named with the widest of its extensions for matrix products; each kind has
  a column. Where a benchmark was measured on several days, the goal's figure is that of the day with the median value
  (of two, the worse one), and the section lists all days.
"""
VERDICTS: dict[Verdict, str] = {"met": "met", "missed": "**missed**", "undecided": "undecided"}
"""Verdict → as the page shows it."""


def render(known: Mapping[str, Benchmark], folder: Path = record.FOLDER) -> str:
    """Render the page."""
    records = {name: record.read(name, folder) for name in known}
    days = {name: record.read_days(name, folder) for name in known}
    kinds = sorted({kind_of(day.machine.processor) for every in days.values() for day in every})
    heads = " | ".join(kinds or ["measured"])
    lines = [HEAD, "## Goals", "", f"| goal | benchmark | {heads} |", "|---|---|" + "---|" * max(1, len(kinds))]
    for name, one in known.items():
        for goal in one.goals:
            cells = " | ".join(_reached(goal, days[name], kind) for kind in kinds or [""])
            lines.append(f"| {_goal(goal)} | `{name}` | {cells} |")
    silent = [name for name, one in known.items() if not one.goals and records[name] is None]
    if silent:
        lines += ["", f"Without a goal, and not measured: {', '.join(f'`{name}`' for name in silent)}."]
    for name, one in known.items():
        entry, by_hand = records[name], {other: record.read(other, folder) for other in one.by_hand}
        if entry is not None or any(by_hand.values()):
            lines += ["", *section(one, entry, by_hand), *by_day(one, days[name])]
    return "\n".join(lines) + "\n"


def drawings(known: Mapping[str, Benchmark], folder: Path = record.FOLDER) -> dict[str, str]:
    """SVG text of the plots of all records, by file name."""
    return {
        drawing(name, plot): draw(plot)
        for name, one in known.items()
        for plot in plots([record.read(other, folder) for other in (name, *one.by_hand)])
    }


def drawing(name: str, plot: Plot) -> str:
    """File name of a benchmark's plot."""
    return f"{name}-{plot.name}.svg"


def plots(records: Iterable[Record | None]) -> list[Plot]:
    """The plots of one benchmark's records."""
    return joined(one.measured.plots for one in records if one is not None)


def joined(measured: Iterable[Iterable[Plot]]) -> list[Plot]:
    """Merge plots of the same name: their series contain the points of all of them."""
    by_name: dict[str, Plot] = {}
    for plot in (plot for plots in measured for plot in plots):
        series = {one.name: one for one in (by_name[plot.name].series if plot.name in by_name else ())}
        for one in plot.series:
            points = (*(series[one.name].points if one.name in series else ()), *one.points)
            series[one.name] = one.model_copy(update={"points": tuple(sorted(points, key=lambda point: point.x))})
        by_name[plot.name] = plot.model_copy(update={"series": tuple(series.values())})
    return list(by_name.values())


def section(
    one: Benchmark, entry: Record | None, by_hand: Mapping[str, Record | None] = MappingProxyType({})
) -> list[str]:
    """The section of a benchmark: its record, and those measured by hand."""
    lines = [f"## {one.name}", "", one.what]
    for plot in plots([entry, *by_hand.values()]):
        text = f"{plot.title}; {plot.y}, by {plot.x}"
        lines += ["", f"![{text}](../benchmarks/records/{drawing(one.name, plot)})"]
    for name, that in [(one.name, entry), *by_hand.items()]:
        if that is not None:
            lines += ["", *_table(one, that)]
        else:
            lines += ["", f"{name}: not measured (`{one.by_hand.get(name, f'make bench NAME={one.name}')}`)"]
    return lines


def _table(one: Benchmark, entry: Record) -> list[str]:
    """The figures of a record, its notes, and where they were measured."""
    lines = [
        "| figure | measured | processor time | goal | |",
        "|---|---|---|---|---|",
    ]
    goals = {figure: goal for goal in one.goals if (figure := entry.figure(goal)) is not None}
    for figure in entry.measured.figures:
        goal = goals.get(figure)
        against = f", against {figure.against}" if figure.against and figure.against not in figure.name else ""
        cpu = "" if figure.cpu is None else _value(figure.cpu, figure.unit)
        judged = " | " if goal is None else f"{_bound(goal)} | {VERDICTS[goal.verdict(figure)]}"
        lines.append(f"| {figure.name}{against} | {_measured(figure)} | {cpu} | {judged} |")
    for name, curve in entry.measured.curves.items():
        text = ", ".join(f"{tokens:,}: {loss:.3f}" for tokens, loss in _thinned(curve))
        lines += ["", f"Loss by tokens, {name}: {text}"]
    lines += ["", *(f"- {note}" for note in entry.measured.notes), f"- {_where(entry)}"]
    return lines


def write(known: Mapping[str, Benchmark]) -> None:
    """Write the page, and its plots to the folder of the records."""
    for path in record.FOLDER.glob("*.svg"):
        path.unlink()
    for name, text in drawings(known).items():
        (record.FOLDER / name).write_text(text, encoding="utf-8")
    PAGE.write_text(render(known), encoding="utf-8")


def headline(goal: Goal, days: Iterable[Record]) -> Record | None:
    """The record with the median value of a goal's figure; of an even number the worse of the two in the middle."""
    valued = [(figure.value, one.date, one) for one in days if (figure := one.figure(goal)) is not None]
    if not valued:
        return None
    worst_first = sorted(valued, key=lambda item: item[:2], reverse=goal.at_least is None)
    return worst_first[(len(valued) - 1) // 2][2]


def kind_of(processor: str) -> str:
    """The name of a processor and the widest of its extensions: what tells the kinds apart."""
    words = [word for word in processor.replace("(R)", "").replace("(TM)", "").split() if word != "Processor"]
    name = " ".join(word for word in words if word not in ROUNDING)
    extensions = [word for word in words if word in ROUNDING]
    return ", ".join([name, *extensions[-1:]])


def by_day(one: Benchmark, days: Sequence[Record]) -> list[str]:
    """A table of the goals' figures on every day; empty where there is but one."""
    goals = [goal for goal in one.goals if any(day.figure(goal) for day in days)]
    if len(days) < 2 or not goals:
        return []
    heads = " | ".join(f"{day.day}, {kind_of(day.machine.processor)}, commit {day.commit}" for day in days)
    lines = ["", f"| goal | {heads} |", "|---" * (1 + len(days)) + "|"]
    for goal in goals:
        figures = [day.figure(goal) for day in days]
        values = " | ".join("" if figure is None else _measured(figure) for figure in figures)
        lines.append(f"| {goal.figure} | {values} |")
    for day in days:
        if day.what != days[-1].what:
            lines += ["", f"On {day.day} this was measured: {day.what}"]
    return lines


def _reached(goal: Goal, days: Sequence[Record], kind: str) -> str:
    """Figure and verdict of a goal on a kind of processor."""
    own = [day for day in days if kind_of(day.machine.processor) == kind]
    entry = headline(goal, own)
    figure = None if entry is None else entry.figure(goal)
    if entry is None or figure is None:
        return "not measured"
    count = sum(1 for one in own if one.figure(goal))
    several = f", of {count} days" if count > 1 else ""
    company = ", on a busy machine" if entry.company.busy else ""
    return f"{_measured(figure)}{several}: {VERDICTS[goal.verdict(figure)]}{company}"


def _goal(goal: Goal) -> str:
    return f"{goal.figure}: {_bound(goal)}"


def _bound(goal: Goal) -> str:
    bounds = [
        *([] if goal.at_least is None else [f"≥ {_value(goal.at_least, goal.unit)}"]),
        *([] if goal.at_most is None else [f"≤ {_value(goal.at_most, goal.unit)}"]),
    ]
    return " and ".join(bounds)


def _measured(figure: Figure) -> str:
    value = _value(figure.value, figure.unit)
    if figure.low is None or figure.high is None:
        return value
    return f"{value} ({_number(figure.low)} to {_number(figure.high)})"


def _value(value: float, unit: str) -> str:
    return f"{_number(value)} {unit}".rstrip()


def _number(value: float) -> str:
    """Format with three significant digits."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _thinned(curve: tuple[tuple[int, float], ...], most: int = 8) -> list[tuple[int, float]]:
    """At most `most` points of a curve, including the last."""
    every = max(1, -(-len(curve) // most))
    return list(curve[::-1][::every][::-1])


def _where(entry: Record) -> str:
    company, machine = entry.company, entry.machine
    others = (
        f"others used {company.others:.0%} of it, the hypervisor {company.stolen:.0%}, load before "
        f"{company.load_before:.1f}"
    )
    busy = "**the machine was busy**: " if company.busy else ""
    packages = ", ".join(f"{name} {number}" for name, number in entry.versions.items())
    return (
        f"{entry.date}, commit {entry.commit}, {entry.seconds:.0f} s, {entry.threads} threads; {machine.processor}, "
        f"{machine.cores} cores, {machine.memory_gib:.0f} GiB; {busy}{others}; {packages}"
    )
