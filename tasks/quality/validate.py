"""The verdict on a dataset: Great Expectations validates every table before anything trains on it.

    tables ─▶ measures, a file at a time (pipelines.corpora.evidence.dataset_evidence)
               └─▶ representative rows of each table ─▶ expectations ─▶ Data Docs, verdict.json, profile.json
                   accepted.json: the profile of the previous version ─▶ drift

The columns of the questions are measured first (`characters`, `copies`, `also_in`, `overlap`, `problem`, `language`,
`tokens`, …), in bounded memory whatever a table's size. Failed rows are shown with their location (`stands_at`) and
beginning (`text`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.corpora.evidence.dataset_evidence import DatasetEvidence, gather_evidence
from pipelines.corpora.evidence.profile import dataset_profile
from pipelines.corpora.settings.tables import all_tables, family_of
from pipelines.corpora.settings.task import has_classes
from pipelines.corpora.shards.tables import origin
from pipelines.corpora.shards.writing import read_json, replaced_atomically, write_json
from pipelines.corpora.steps.step import DataStep, begin, run_step
from pipelines.errors import QualityError
from tasks.quality.acceptance import ACCEPTED, VERDICT, accept, accepts_drift, reference_profile
from tasks.quality.data_docs import index_page, refuses, run_suites
from tasks.quality.questions import questions

if TYPE_CHECKING:
    from pandas import DataFrame


def validate(dataset: str, root: Path) -> None:
    """Write verdict.json, profile.json and the Data Docs, with a copy of the verdict that outlives a rejected version.

    Raises QualityError, which names the first failed expectation with five rows.
    """
    step = begin("validate", dataset, root)
    summary = read_json(step.home / "summary.json")
    evidence = gather_evidence(step, summary)
    profile = dataset_profile(evidence)
    before = None if accepts_drift(dataset) else reference_profile(step.home / ACCEPTED, profile)
    suites = {
        name: questions(name, step.settings, before and before["tables"].get(name))
        for name in all_tables(step.settings)
    }
    documents = root / "data" / "docs" / dataset
    with replaced_atomically(documents) as folder:
        results = run_suites(suites, lambda name: frame(name, evidence, step), folder)
        (folder / "index.html").write_text(index_page(dataset, results, folder), encoding="utf-8")
        verdict = {
            "dataset": dataset,
            "success": all(result["success"] for result in results.values()),
            "tables": results,
            "data_docs": (documents / "index.html").relative_to(root).as_posix(),
        }
        write_json(folder / VERDICT, verdict)
    write_json(step.home / "profile.json", profile)
    write_json(step.home / VERDICT, verdict)
    if not verdict["success"]:
        raise QualityError(failure_message(verdict))
    accept(step.home / ACCEPTED, profile, before)
    step.finished()


def frame(table: str, evidence: DatasetEvidence, step: DataStep) -> DataFrame:
    """The representative rows of a table, with the columns of its questions."""
    rows = evidence.frame(table)
    family = family_of(step.settings, table)
    rows["stands_at"] = rows["source" if family is None else origin(family)]
    if family is not None and has_classes(family):
        answers = evidence.totals(table)["kinds"]
        rows["examples_of_label"] = rows["kind"].map(answers)
        rows["share_of_label"] = rows["examples_of_label"] / max(1, sum(answers.values()))
    return rows


def failure_message(verdict: dict[str, Any]) -> str:
    """Error message with the first failed expectation, its rows, and the names of the other failed ones."""
    failed = [
        (table, entry)
        for table, result in verdict["tables"].items()
        for entry in result["expectations"]
        if refuses(entry)
    ]
    table, first = failed[0]
    about = f" on {first['column']!r}" if first["column"] else ""
    count = f"{first['unexpected_count']} documents, " if first["unexpected_count"] else ""
    lines = [
        f"{verdict['dataset']}: the table {table!r} failed {first['expectation']}{about} ({first['meaning']}): "
        + (first["trouble"] or f"{count}observed {first['observed']}")
    ]
    for row in first["rows"]:
        value = row.get(first["column"])
        shown = "" if first["column"] == "text" else f"{first['column']}={value!r}  "
        lines.append(f"{row.get('stands_at')}  {shown}{row.get('text')!r}")
    lines += [f"also failed: {table}: {entry['expectation']} ({entry['meaning']})" for table, entry in failed[1:]]
    if any(entry["expectation"] == "expect_no_drift" for _, entry in failed):
        lines.append(f"if the change is intended: cursus data {verdict['dataset']} --accept")
    lines.append(f"all results: {verdict['data_docs']} and data/docs/{verdict['dataset']}/{VERDICT}")
    return "\n".join(lines)


if __name__ == "__main__":
    run_step(validate)
