"""The report of one execution: an HTML page that needs nothing but itself, a page each for what goes deeper, and every table
beside them as CSV and LaTeX.

    <folder>/report.html        the summary, scores, costs, lineage, training, data
    <folder>/<page>.html        a page of `pipelines.reports.sections` that found something to show
    <folder>/tables/            <page>-<table>.csv and .tex

`render_report` reads the store (`metrics.jsonl` of every step, `evaluation.json` of the evaluate stages) and what its
caller knows (the execution, the provenance records, the data's summary and verdict). It decides no number: everything
shown was measured by an evaluation or recorded beside an artifact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipelines.components import discover
from pipelines.reports.anchors import Anchor
from pipelines.reports.elements.axes import count, duration
from pipelines.reports.elements.table import TABLES, Column, Table, number, text, write_tables
from pipelines.reports.judged_stages import read_judged, score_tables
from pipelines.reports.sections import Page, Report
from pipelines.task_families import TaskFamily

REPORT = "report"
STEP_NAMES = {
    "collect": "collecting",
    "clean": "cleaning",
    "deduplicate": "removing duplicates",
    "decontaminate": "removing overlap with validation and test",
}


def render_report(
    execution: Mapping[str, Any],
    records: Mapping[str, Mapping[str, Any]],
    store: Path,
    summary: Mapping[str, Any],
    verdict: Mapping[str, Any],
    out: Path,
    anchors: Sequence[Anchor] = (),
) -> Path:
    """Write the pages of `execution`, the first to the file `out` and the others beside it, and return `out`.

    `records` maps fingerprints to provenance records: those of the execution's steps and of all their ancestors.
    `store` holds a folder for each fingerprint; `summary` and `verdict` are the dataset's, `{}` where there is none.
    `anchors` are published figures, of whatever datasets.
    """
    from pipelines.reports.elements import comparisons, costs, words
    from pipelines.reports.elements.ancestry import draw_ancestry
    from pipelines.reports.elements.curves import draw_lineage_curves, draw_stage_curves, read_curves
    from pipelines.reports.elements.writing import write_page

    steps = execution["steps"]
    judged = read_judged(store, [(one["stage"], one["fingerprint"]) for one in steps if one["kind"] == "evaluate"])
    report = Report(execution, records, store, judged, anchors)
    compared = [comparisons.compare(table, execution, records) for table in score_tables(judged)]
    vectors = [
        words.describe_words(stage, section)
        for stage, section in report.sections("models")
        if any("neighbours" in model for model in section["models"])
    ]
    footprints = [
        costs.describe_costs(stage, section)
        for stage, section in report.sections("models")
        if any("latency_ms" in model for model in section["models"])
    ]
    language = next((one.dataset["language"] for one in judged if "language" in one.dataset), None)
    common = {"execution": execution, "language": language or summary.get("language") or "en"}
    sentences, links = write_pages(report, out, common)
    curves = read_curves(steps, records, store)
    shown = [_step(step, records) for step in steps]
    tables = [
        *(table for comparison in compared for table in comparison["tables"].values()),
        *(footprint["table"] for footprint in footprints),
        _steps(shown),
    ]
    write_tables(REPORT, tables, out.parent / TABLES)
    # last: the page that leads to the others
    return write_page(
        "report.html",
        {
            **common,
            "pages": links,
            "here": out.name,
            "sentences": [
                *(sentence for comparison in compared for sentence in comparisons.sentences(comparison)),
                *(sentence for table in vectors for sentence in words.sentences(table)),
                *(sentence for footprint in footprints for sentence in costs.sentences(footprint)),
                *sentences,
            ],
            "data": _data(summary, verdict),
            "curves": draw_lineage_curves(curves) if curves else None,
            "stage_curves": draw_stage_curves(curves),
            "comparisons": compared,
            "vectors": vectors,
            "footprints": footprints,
            "ancestry": draw_ancestry(steps, records) if records else None,
            "steps": shown,
            "tables": {table.key: table for table in tables},
            "environment": _environment(execution, records),
        },
        out,
    )


def write_pages(report: Report, first: Path, common: Mapping[str, Any]) -> tuple[list[str], list[dict[str, str]]]:
    """Write every page that finds something in `report` into the folder of `first`, the page that leads to them.

    `common` are values for all templates. Answers the pages' sentences for that page, and the links between all of them
    (empty where `first` stands alone).
    """
    from pipelines.reports.elements.writing import write_page

    discover(Page.__module__)
    found = [
        (page, content)
        for page in (member.model_validate({}) for _, member in sorted(Page.members.items()))
        if isinstance(page, Page) and (content := page.found(report)) is not None
    ]
    links = [{"file": first.name, "title": "Report"}]
    links += [{"file": f"{page.name}.html", "title": page.title} for page, _ in found]
    told: list[str] = []
    for page, content in found:
        sentences, tables = page.sentences(content), page.tables(content)
        told += sentences
        write_tables(page.name, tables, first.parent / TABLES)
        values = {
            **common,
            "pages": links,
            "here": f"{page.name}.html",
            "sentences": sentences,
            "content": content,
            "tables": {table.key: table for table in tables},
        }
        write_page(f"{page.name}.html", values, first.parent / f"{page.name}.html")
    return told, links


def _data(summary: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of every table, what each step dropped and why, and what the validation said."""
    family = TaskFamily.model_validate(summary["family"]) if "family" in summary else TaskFamily.usually()
    drops = []
    before: dict[str, int] = {}
    for step in summary.get("steps", []):
        for table, counts in sorted(step["tables"].items()):
            for reason, texts in sorted(counts.get("dropped", {}).items()):
                drops.append(
                    {
                        "step": STEP_NAMES.get(step["step"], step["step"]),
                        "table": table,
                        "reason": reason,
                        "number": texts,
                        "of": before.get(table),
                    }
                )
            before[table] = counts["documents"]
    checks = {
        table: {
            "success": result["success"],
            "checked": len(result["expectations"]),
            "failed": [entry for entry in result["expectations"] if not entry["success"]],
        }
        for table, result in verdict.get("tables", {}).items()
    }
    order = ("general", "general_heldout", "domain", "task_text", "train", "validation", "test")
    tables = summary.get("tables", {})
    return {
        "language": summary.get("language", ""),
        "family": family.name.replace("_", " "),
        "labels": summary.get("labels", []),
        "classes": bool(summary.get("examples_of_label", {}).get("train")),
        "tables": [(name, tables[name], checks.get(name)) for name in order if name in tables],
        "shown": [_example(family, example) for example in summary.get("shown", [])[:3]],
        "drops": drops,
        "success": verdict.get("success"),
        "checked": sum(table["checked"] for table in checks.values()),
        "failed": [(table, entry) for table, result in checks.items() for entry in result["failed"]],
        "data_docs": verdict.get("data_docs"),
    }


def _example(family: TaskFamily, example: Mapping[str, Any]) -> dict[str, str]:
    """An example's words and its right answer."""
    targets = [name for name in family.target if family.columns[name] in ("string", "double")]
    answer = str(example[targets[0]]) if targets else family.answer_text(example)
    return {"answer": answer, "text": family.text(example)}


def _step(step: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    record = records.get(step["fingerprint"], {})
    result = record.get("result", {})
    return {
        **step,
        "name": f"{step['stage']}@{step['seed']}",
        "kind": step["kind"].replace("_", " "),
        "tokens": result.get("tokens") or None,
        "parameters": result.get("parameters") or None,
    }


def _steps(steps: Sequence[Mapping[str, Any]]) -> Table:
    def fingerprint(value: str) -> Markup:
        return Markup('<code title="{whole}">{short}</code>').format(whole=value, short=value[:16])

    rows = [{**step, "seconds": None if step["cached"] else step["seconds"]} for step in steps]
    columns = (
        text("name", "Step"),
        text("kind", "Kind"),
        Column("fingerprint", "Fingerprint", fingerprint),
        number("tokens", "Tokens", count),
        number("parameters", "Parameters", count),
        number("seconds", "Seconds here", duration),
    )
    return Table("steps", "Steps and fingerprints", columns, rows)


def _environment(execution: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Name and value of what the steps ran on; a value that differed between steps lists all of them."""
    seen: dict[str, list[str]] = {}
    for step in execution["steps"]:
        environment = records.get(step["fingerprint"], {}).get("environment", {})
        values = {name: environment.get(name) for name in ("python", "platform", "commit")}
        for name, value in (values | environment.get("packages", {})).items():
            if value and value not in seen.setdefault(name, []):
                seen[name].append(str(value))
    return [(name, ", ".join(values)) for name, values in seen.items() if values]


def read_records(steps: Sequence[Mapping[str, Any]], store: Path) -> dict[str, dict[str, Any]]:
    """The provenance records of `steps` and of all their ancestors, read from the store; missing ones are left out."""
    from pipelines.lineage.provenance import RECORD

    records: dict[str, dict[str, Any]] = {}
    waiting = [step["fingerprint"] for step in steps]
    while waiting:
        fingerprint = waiting.pop()
        path = store / fingerprint / RECORD
        if fingerprint not in records and path.is_file():
            records[fingerprint] = json.loads(path.read_text(encoding="utf-8"))
            waiting += records[fingerprint]["parents"].values()
    return {fingerprint: records[fingerprint] for fingerprint in sorted(records)}
