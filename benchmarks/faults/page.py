"""docs/reliability.md: what the records say, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.checkouts import ROOT
from benchmarks.faults import records
from benchmarks.faults.fault import Fault
from benchmarks.faults.records import Record

PAGE = ROOT / "docs" / "reliability.md"
COUNTED = ("lost", "wrong", "hangs", "unclear")
HEAD = """\
# Reliability

`make faults` disturbs a small regime (plain text → fine-tune → compress → evaluate) in every way listed here, runs it again until
it is done, and compares every artifact, byte for byte, with those of an undisturbed run. This page is generated from the records
in `docs/reliability/`, one line a case; nothing in it is written by hand.

- **lost**: finished work that was computed again: a published step, a result not yet published, a checkpoint
- **wrong**: an artifact, record, report or MLflow run that differs from an undisturbed run's
- **hangs**: 60 seconds in which nothing was said, written or computed
- **unclear**: an end that is neither success nor one sentence that names what to do
"""

TAIL = """\
The moment of a strike is drawn in processor time, from the number of its case, so that a busy machine does not move it. Kills come
in rows at one checkout: a run that was killed is killed again while it recovers, and only the last recovery of a row is timed.
Seconds are those of whole runs, start-up included, on a machine that did other work as well.
"""


def render(known: Mapping[str, Fault], folder: Path = records.FOLDER) -> str:
    """The page."""
    by_kind = {name: records.read(name, folder) for name in known}
    every = [record for one in by_kind.values() for record in one]
    lines = [
        HEAD,
        "| kind | what is done | cases | lost | wrong | hangs | unclear | longest recovery |",
        f"|---{'|---' * 7}|",
    ]
    for name, fault in known.items():
        cases = by_kind[name]
        counts = " | ".join(str(sum(bool(getattr(record, kind)) for record in cases)) for kind in COUNTED)
        lines.append(f"| `{name}` | {fault.description} | {len(cases)} | {counts} | {_longest(cases)} |")
    counts = " | ".join(f"**{sum(bool(getattr(record, kind)) for record in every)}**" for kind in COUNTED)
    lines += [f"| **all** | | **{len(every)}** | {counts} | {_longest(every)} |", ""]
    lines += ["## How disturbed runs ended", "", "| kind | ended | cases |", "|---|---|---|"]
    for name, cases in by_kind.items():
        for how in sorted({_kind_of_end(record) for record in cases}):
            lines.append(f"| `{name}` | {how} | {sum(_kind_of_end(record) == how for record in cases)} |")
    bad = [record for record in every if not record.good]
    if bad:
        lines += ["", "## What went wrong", ""]
        for record in bad:
            problems = "; ".join(
                f"{kind}: {', '.join(getattr(record, kind))}" for kind in COUNTED if getattr(record, kind)
            )
            lines.append(f"- `{record.kind}` {record.number}, {record.struck}: {problems}")
    lines += ["", "## Where and when", ""]
    for machine in sorted({record.machine for record in every}):
        dates = sorted(record.date for record in every if record.machine == machine)
        commits = sorted({record.commit for record in every if record.machine == machine})
        lines.append(f"- {machine}; {dates[0]} to {dates[-1]}; {len(dates)} cases at commits {', '.join(commits)}")
    lines += [
        "",
        TAIL,
    ]
    return "\n".join(lines)


def write(known: Mapping[str, Fault]) -> None:
    """Write the page."""
    PAGE.write_text(render(known), encoding="utf-8")


def summary(known: Mapping[str, Fault]) -> str:
    """The four numbers, and how many cases are missing."""
    every = [record for name in known for record in records.read(name)]
    counts = ", ".join(f"{sum(bool(getattr(record, kind)) for record in every)} {kind}" for kind in COUNTED)
    missing = sum(max(0, fault.cases - len(records.read(name))) for name, fault in known.items())
    return f"{len(every)} cases: {counts}" + (f"; {missing} cases are missing" if missing else "")


def _kind_of_end(record: Record) -> str:
    first = record.ended.split(":")[0]
    return {"error": "one sentence", "finished": "success", "killed": "killed itself"}.get(first, "otherwise")


def _longest(cases: list[Record]) -> str:
    seconds = [record.recovery_seconds for record in cases if record.recovery_seconds is not None]
    return f"{max(seconds):.0f} s" if seconds else ""
