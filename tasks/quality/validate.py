"""The verdict on a dataset: Great Expectations asks every table its questions before anything trains on it.

    tables ─▶ measures, a file at a time (pipelines.corpora.evidence.dataset_evidence) ─▶ rows that stand for each table ─▶ expectations
                                                                                                    ├─▶ Data Docs
       accepted.json: the profile of the version before ◀── profile.json ◀── verdict.json ◀─────────┘

What a question needs is measured first (`characters`, `copies`, `also_in`, `overlap`, `problem`, `language`, `tokens`, …), in
bounded memory whatever a table's size. Failures show their rows as where they stand (`stands_at`) and how they begin (`text`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.corpora.evidence.dataset_evidence import DatasetEvidence, gather_evidence
from pipelines.corpora.evidence.profile import dataset_profile
from pipelines.corpora.settings.task import has_classes
from pipelines.corpora.shards.tables import origin
from pipelines.corpora.shards.writing import read_json, replaced_atomically, write_json
from pipelines.corpora.steps.step import LABELLED, TABLES, DataStep, begin, run_step
from pipelines.errors import QualityError
from tasks.quality.data_docs import asked, index_page, refuses
from tasks.quality.questions import questions

if TYPE_CHECKING:
    from pandas import DataFrame

ACCEPTED = "accepted.json"
"""What the last version that passed was like, and the one before it. No output of DVC's: it outlives a refused version."""


def validate(dataset: str, root: Path) -> None:
    """Write verdict.json, profile.json and the Data Docs. QualityError names the first failed expectation with five rows."""
    step = begin("validate", dataset, root)
    summary = read_json(step.home / "summary.json")
    found = gather_evidence(step, summary)
    profile = dataset_profile(found)
    before = compared_with(step.home / ACCEPTED, profile)
    suites = {name: questions(name, step.settings, before and before["tables"].get(name)) for name in TABLES}
    documents = root / "data" / "docs" / dataset
    with replaced_atomically(documents) as folder:
        results = asked(suites, lambda name: frame(name, found, step), folder)
        (folder / "index.html").write_text(index_page(dataset, results, folder), encoding="utf-8")
    verdict = {
        "dataset": dataset,
        "success": all(result["success"] for result in results.values()),
        "tables": results,
        "data_docs": (documents / "index.html").relative_to(root).as_posix(),
    }
    write_json(step.home / "profile.json", profile)
    write_json(step.home / "verdict.json", verdict)
    if not verdict["success"]:
        raise QualityError(complaint(verdict))
    write_json(step.home / ACCEPTED, {"accepted": profile, "before": before})
    step.finished()


def compared_with(path: Path, profile: dict[str, Any]) -> dict[str, Any] | None:
    """The profile that a version is compared with: the last accepted one, unless that is this very version.

    Judging a version again so gives the same answers.
    """
    if not path.is_file():
        return None
    known = read_json(path)
    found: dict[str, Any] | None = known["before"] if known["accepted"] == profile else known["accepted"]
    return found


def frame(table: str, found: DatasetEvidence, step: DataStep) -> DataFrame:
    """The rows that stand for a table, with the columns its questions ask about."""
    rows = found.frame(table)
    family = step.settings.task.family
    rows["stands_at"] = rows[origin(family) if table in LABELLED else "source"]
    if table in LABELLED and has_classes(family):
        answers = found.totals(table)["kinds"]
        rows["examples_of_label"] = rows["kind"].map(answers)
        rows["share_of_label"] = rows["examples_of_label"] / max(1, sum(answers.values()))
    return rows


def complaint(verdict: dict[str, Any]) -> str:
    """The first failed expectation with its rows, and the names of the others."""
    failed = [
        (table, entry)
        for table, result in verdict["tables"].items()
        for entry in result["expectations"]
        if refuses(entry)
    ]
    table, first = failed[0]
    about = f" on {first['column']!r}" if first["column"] else ""
    seen = f"{first['unexpected_count']} documents, " if first["unexpected_count"] else ""
    lines = [
        f"{verdict['dataset']}: the table {table!r} failed {first['expectation']}{about} ({first['meaning']}): "
        + (first["trouble"] or f"{seen}observed {first['observed']}")
    ]
    for row in first["rows"]:
        value = row.get(first["column"])
        shown = "" if first["column"] == "text" else f"{first['column']}={value!r}  "
        lines.append(f"{row.get('stands_at')}  {shown}{row.get('text')!r}")
    lines += [f"also failed: {table}: {entry['expectation']} ({entry['meaning']})" for table, entry in failed[1:]]
    if any(entry["expectation"] == "expect_no_drift" for _, entry in failed):
        lines.append(f"if the change is meant, delete data/prepared/{verdict['dataset']}/{ACCEPTED} and run again")
    lines.append(f"all answers: {verdict['data_docs']} and data/prepared/{verdict['dataset']}/verdict.json")
    return "\n".join(lines)


if __name__ == "__main__":
    run_step(validate)
