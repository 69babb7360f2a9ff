"""How claims were measured, as the page shows it: what was equal, when, on which machine, of which code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pipelines.lineage import hardware
from pipelines.lineage.store import Artifact
from tasks.records.fairness import fairness_text
from tasks.records.standings import Standing
from tasks.records.tuning import tuning_texts

CONDITIONS = """\
## How each was measured

What was equal on all sides, and what not, is counted from the records of training: tokens and steps are means over the
models of a side, in the order in which the claim names the sides, the best first; `before` is what the stages before
the compared ones read. *Stale*: the code or the settings of a stage have changed since.
"""
COLUMNS = ("claim", "sides", "measured", "code")
OF_STANDING: dict[Standing, str] = {
    "current": "current",
    "stale": "**stale**",
    "gone": "the claim, the recipe or the dataset is no more",
    "unknown": "not known: recorded before records said of which code",
}


def condition_rows(
    records: Sequence[Mapping[str, Any]], titles: Sequence[str], standings: Sequence[Standing]
) -> Iterator[list[str]]:
    """A row for each record."""
    for record, title, standing in zip(records, titles, standings, strict=True):
        sides = "; ".join((fairness_text(record), *tuning_texts(record)))
        yield [title, sides, measured_text(record), OF_STANDING[standing]]


def measured_text(record: Mapping[str, Any]) -> str:
    """When, at which commit and on which machine a record was measured."""
    day = f"{datetime.fromisoformat(record['started']):%Y-%m-%d}, " if "started" in record else ""
    sources = _sources_text(record)
    machine = record.get("machine")
    if machine is None:
        return f"{day}{sources}; {record['cost']['processor']}, {record['cost']['cores']} cores"
    extensions = f" ({', '.join(machine['extensions'])})" if machine["extensions"] else ""
    others = len(record["commits"]) - 1
    further = f", models of {others} more commit{'s' if others > 1 else ''}" if others else ""
    return (
        f"{day}{sources}{further}; {machine['processor']}{extensions}, {machine['cores']} cores, "
        f"{', '.join(map(str, machine['threads']))} threads"
    )


def _sources_text(record: Mapping[str, Any]) -> str:
    """The commit of a record; of a project of its own that of the code, and whether the project is in git."""
    commit = record["commit"] or ""
    # old records have no mark of a clean tree
    clean = ", sources differed" if commit.endswith("+") else ", clean tree" if record.get("clean") else ""
    code = record.get("code")
    if code is None:
        return f"commit {_short(commit)}{clean}"
    differed = ", sources differed" if (code["commit"] or "").endswith("+") else ""
    of = f", commit {_short(code['commit'])}{differed}" if code["commit"] else ""
    project = f"at commit {_short(commit)}{clean}" if commit else "outside git"
    return f"cursus {code['version']}{of}, in a project {project}"


def machine_record(artifacts: Sequence[Artifact]) -> dict[str, Any]:
    """The machine that records a measurement, and the devices and threads with which its models were computed."""
    environments = [one.provenance.environment for one in artifacts]
    return {
        "processor": hardware.processor(),
        "extensions": [flag for flag in hardware.ROUNDING if flag in hardware.extensions()],
        "cores": hardware.cores(),
        "devices": sorted({one.device for one in environments if one.device}),
        "threads": sorted({int(one.runtime["threads"]) for one in environments if "threads" in one.runtime}),
    }


def sources_record(artifacts: Sequence[Artifact]) -> dict[str, Any]:
    """The commits at which the artifacts of a measurement were computed, and whether none had changes beside it."""
    commits = sorted({one.provenance.environment.commit or "none" for one in artifacts})
    return {"commits": commits, "clean": all(one != "none" and not one.endswith("+") for one in commits)}


def items_record(comparisons: Sequence[Artifact]) -> list[dict[str, Any]]:
    """The files with the scores of every test item, of which all figures and intervals were computed."""
    return [
        {"artifact": one.fingerprint, "file": name, "sha256": file.sha256, "bytes": file.bytes}
        for one in comparisons
        for name, file in sorted(one.provenance.files.items())
        if name.endswith(".safetensors")
    ]


def _short(commit: str) -> str:
    return commit[:8] or "none"
