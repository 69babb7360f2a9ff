"""docs/reliability.md, generated from the records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.checkouts import ROOT
from benchmarks.faults import records
from benchmarks.faults.fault import Fault
from benchmarks.faults.records import COUNTED, Record

PAGE = ROOT / "docs" / "reliability.md"
HEAD = """\
# Reliability

`make faults` injects the faults below into a small regime (plain text → fine-tune → compress → evaluate), and kills
into recipes of lines, channels, features and counted models (`benchmarks/faults/recipes`); runs it again until it is
done, and compares every artifact, byte for byte, with those of an undisturbed run. This page is generated from the
records in `docs/reliability/`, one line per case; do not edit it by hand.

- **nothing ran**: the fault came before any step had begun, so that only the result of the next run is compared
- **nothing finished**: it came before a step, a result or a checkpoint was finished, so that nothing could be lost;
  those of *nothing ran* included
- **lost**: finished work that was computed again: a published step, a result not yet published, a checkpoint
- **wrong**: an artifact, record, report or MLflow run that differs from an undisturbed run's
- **hangs**: 60 seconds without output, writes or computation
- **unclear**: an exit that is neither success nor one sentence that says what to do
- **fixed**: the case went wrong at an earlier commit, the code was changed, and the case was run again; its other
  columns are those of the last run
"""

TAIL = """\
The moment of a fault is drawn in processor time, seeded by the case's number, so that other load does not move it;
since the commit after 447ff1c9, three faults in four also wait until up to three steps, results or checkpoints are
finished, because most of a short run is start-up.
Kills come in series in one checkout: a killed run is killed again while it recovers, and only the last recovery of a
series is timed. Seconds are those of whole runs, including start-up, on a machine that did other work as well.
"""


def render(known: Mapping[str, Fault], folder: Path = records.FOLDER) -> str:
    """Render the page."""
    by_kind = {name: records.read(name, folder) for name in known}
    every = [record for one in by_kind.values() for record in one]
    lines = [
        HEAD,
        "| kind | fault | cases | nothing ran | nothing finished | lost | wrong | hangs | unclear | fixed "
        "| longest recovery |",
        f"|---{'|---' * 10}|",
    ]
    for name, fault in known.items():
        cases = by_kind[name]
        counts = " | ".join(str(count) for count in _counts(cases))
        lines.append(f"| `{name}` | {fault.description} | {len(cases)} | {counts} | {_longest(cases)} |")
    counts = " | ".join(f"**{count}**" for count in _counts(every))
    lines += [f"| **all** | | **{len(every)}** | {counts} | {_longest(every)} |", ""]
    lines += ["## How disturbed runs ended", "", "| kind | end | cases |", "|---|---|---|"]
    for name, cases in by_kind.items():
        for how in sorted({_kind_of_end(record) for record in cases}):
            lines.append(f"| `{name}` | {how} | {sum(_kind_of_end(record) == how for record in cases)} |")
    bad = [record for record in every if not record.good]
    if bad:
        lines += ["", "## What went wrong", ""]
        lines += [f"- `{record.kind}` {record.number}, {record.struck}: {record.problems}" for record in bad]
    fixed = [record for record in every if record.fixed]
    if fixed:
        lines += ["", "## What went wrong at earlier commits, and was run again", ""]
        lines += [f"- `{record.kind}` {record.number}: {'; '.join(record.fixed)}" for record in fixed]
    lines += ["", "## Where and when", ""]
    for code, machine in sorted({(record.code, record.machine) for record in every}):
        own = [record for record in every if (record.code, record.machine) == (code, machine)]
        dates = sorted(record.date for record in own)
        commits = ", ".join(sorted({record.commit for record in own}))
        lines.append(f"- code `{code[:12]}` (commit {commits}): {len(own)} cases, {dates[0]} to {dates[-1]}; {machine}")
    lines += [
        "",
        TAIL,
    ]
    return "\n".join(lines)


def _counts(cases: list[Record]) -> list[int]:
    """Columns 4 to 10 of the table."""
    went_wrong = [sum(bool(getattr(record, kind)) for record in cases) for kind in COUNTED]
    return [
        sum(not record.begun for record in cases),
        sum(not record.finished for record in cases),
        *went_wrong,
        sum(bool(record.fixed) for record in cases),
    ]


def write(known: Mapping[str, Fault]) -> None:
    """Write the page."""
    PAGE.write_text(render(known), encoding="utf-8")


def summary(known: Mapping[str, Fault]) -> str:
    """What went wrong, and the number of cases that are missing for the present code."""
    from benchmarks.faults.code import code

    every = [record for name in known for record in records.read(name)]
    counts = ", ".join(f"{sum(bool(getattr(record, kind)) for record in every)} {kind}" for kind in COUNTED)
    missing = sum(fault.cases - sum(one.code == code() for one in records.read(name)) for name, fault in known.items())
    return f"{len(every)} cases: {counts}" + (f"; {missing} cases are missing" if missing else "")


def _kind_of_end(record: Record) -> str:
    first = record.ended.split(":")[0]
    names = {"error": "error message", "finished": "success", "killed": "the command itself was killed"}
    return names.get(first, "other")


def _longest(cases: list[Record]) -> str:
    seconds = [record.recovery_seconds for record in cases if record.recovery_seconds is not None]
    return f"{max(seconds):.0f} s" if seconds else ""
