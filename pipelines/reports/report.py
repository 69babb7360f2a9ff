"""The report of an execution: self-contained HTML pages, with every table as CSV and LaTeX.

    <folder>/report.html        the summary, scores, costs, lineage, training, data
    <folder>/<page>.html        a section of `pipelines.reports.sections` that has data
    <folder>/…zh.html           each page in Chinese, with the same figures
    <folder>/tables/            <page>-<table>.csv and .tex

`render_report` reads the store (`metrics.jsonl` of every step, `evaluation.json` of the evaluate stages) and its
arguments (the execution, the provenance records, the data's summary and verdict). It computes no results: everything
shown was measured by an evaluation or recorded with an artifact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipelines.components import discover
from pipelines.lineage.results import EXAMPLES, SAMPLE
from pipelines.messages.translation import LANGUAGES, in_language, localized, message
from pipelines.reports.anchors import Anchor
from pipelines.reports.elements.axes import count, duration
from pipelines.reports.elements.data import describe_data
from pipelines.reports.elements.table import TABLES, Column, Table, number, text, write_tables
from pipelines.reports.elements.wording import plain
from pipelines.reports.score_tables import read_evaluations, score_tables
from pipelines.reports.sections import Report, Section

REPORT = "report"


def render_report(
    execution: Mapping[str, Any],
    records: Mapping[str, Mapping[str, Any]],
    store: Path,
    summary: Mapping[str, Any],
    verdict: Mapping[str, Any],
    out: Path,
    anchors: Sequence[Anchor] = (),
) -> Path:
    """Write the pages of `execution` in every language, the first English one to the file `out` and the others next to
    it, and return `out`.

    `records` maps fingerprints to provenance records: those of the execution's steps and of all their ancestors.
    `store` holds a folder for each fingerprint; `summary` and `verdict` are the dataset's, `{}` if there is none.
    `anchors` are published figures, of any dataset.
    """
    evaluations = read_evaluations(
        store, [(one["stage"], one["fingerprint"]) for one in execution["steps"] if one["kind"] == "evaluate"]
    )
    report = Report(execution, records, store, evaluations, anchors)
    for name in LANGUAGES:
        with in_language(name):
            _write(report, summary, verdict, out)
    return out


def _write(report: Report, summary: Mapping[str, Any], verdict: Mapping[str, Any], out: Path) -> None:
    """Write the pages in the current language."""
    from pipelines.reports.elements import comparisons, costs, word_vectors
    from pipelines.reports.elements.ancestry import draw_ancestry
    from pipelines.reports.elements.curves import draw_lineage_curves, draw_stage_curves, read_curves
    from pipelines.reports.elements.writing import write_page

    execution, records, evaluations = report.execution, report.records, report.evaluations
    steps = execution["steps"]
    served = None if execution.get("measurement") else execution.get("headline", {}).get("models", {}).get("served")
    compared = [comparisons.compare(table, execution, records) for table in score_tables(evaluations)]
    vectors = [
        word_vectors.describe_word_vectors(stage, section)
        for stage, section in report.sections("models")
        if any("neighbours" in model for model in section["models"])
    ]
    footprints = [
        costs.describe_costs(stage, section)
        for stage, section in report.sections("models")
        if any("latency_ms" in model for model in section["models"])
    ]
    language = next((one.dataset["language"] for one in evaluations if "language" in one.dataset), None)
    common = {"execution": execution, "language": language or summary.get("language") or "en"}
    sentences, links = write_pages(report, out, common)
    curves = read_curves(steps, records, report.store)
    shown = [_step(step, records) for step in steps]
    tables = [
        *(table for comparison in compared for table in comparison["tables"].values()),
        *(footprint["table"] for footprint in footprints),
        _steps(shown),
    ]
    write_tables(REPORT, tables, out.parent / TABLES)
    # last, because it links to the others
    write_page(
        "report.html",
        {
            **common,
            "pages": links,
            "here": localized(out.name),
            "sentences": [
                *(sentence for comparison in compared for sentence in comparisons.sentences(comparison, served)),
                *(sentence for table in vectors for sentence in word_vectors.sentences(table)),
                *(sentence for footprint in footprints for sentence in costs.sentences(footprint)),
                *sentences,
            ],
            "data": describe_data(summary, verdict),
            "sampled_validations": _sampled_validations(steps, records),
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
    """Write the page of every section that has data in `report` into the folder of `first`, the page that links to
    them.

    `common` are values for all templates. Returns the sections' sentences, for the first page, and the links between
    all pages, the first included.
    """
    from pipelines.reports.elements.writing import write_page

    discover(Section.__module__)
    sections = [
        (section, content)
        for section in (member.model_validate({}) for _, member in sorted(Section.members.items()))
        if isinstance(section, Section) and (content := section.section_data(report)) is not None
    ]
    links = [{"file": localized(first.name), "title": message("Report")}]
    links += [{"file": localized(f"{section.name}.html"), "title": message(section.title)} for section, _ in sections]
    summary: list[str] = []
    for section, content in sections:
        sentences, tables = section.sentences(content), section.tables(content)
        summary += sentences
        write_tables(section.name, tables, first.parent / TABLES)
        values = {
            **common,
            "pages": links,
            "here": localized(f"{section.name}.html"),
            "sentences": sentences,
            "content": content,
            "tables": {table.key: table for table in tables},
        }
        write_page(f"{section.name}.html", values, first.parent / f"{section.name}.html")
    return summary, links


def _step(step: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    record = records.get(step["fingerprint"], {})
    result = record.get("result", {})
    return {
        **step,
        "name": f"{step['stage']}@{step['seed']}",
        "kind": plain(step["kind"]),
        "tokens": result.get("tokens") or None,
        "parameters": result.get("parameters") or None,
    }


def _sampled_validations(steps: Sequence[Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The stages whose validations during training read a sample, in words."""
    metrics = {one["stage"]: records.get(one["fingerprint"], {}).get("result", {}).get("metrics", {}) for one in steps}
    return [
        message(
            "{stage}: in each epoch {sample:,} of {examples:,} examples, at its end all of them",
            stage=stage,
            sample=int(values[SAMPLE]),
            examples=int(values[EXAMPLES]),
        )
        for stage, values in metrics.items()
        if SAMPLE in values
    ]


def _steps(steps: Sequence[Mapping[str, Any]]) -> Table:
    def fingerprint(value: str) -> Markup:
        return Markup('<code title="{whole}">{short}</code>').format(whole=value, short=value[:16])

    rows = [{**step, "seconds": None if step["cached"] else step["seconds"]} for step in steps]
    columns = (
        text("name", message("Step")),
        text("kind", message("Kind")),
        Column("fingerprint", message("Fingerprint"), fingerprint),
        number("tokens", message("Tokens"), count),
        number("parameters", message("Parameters"), count),
        number("seconds", message("Seconds here"), duration),
    )
    return Table("steps", message("Steps and fingerprints"), columns, rows)


def _environment(execution: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Names and values of the steps' environment; a value that differs between steps lists all of them."""
    environments: dict[str, list[str]] = {}
    for step in execution["steps"]:
        environment = records.get(step["fingerprint"], {}).get("environment", {})
        values = {name: environment.get(name) for name in ("python", "platform", "commit")}
        for name, value in (values | environment.get("packages", {})).items():
            if value and value not in environments.setdefault(name, []):
                environments[name].append(str(value))
    return [(name, ", ".join(values)) for name, values in environments.items() if values]


def read_records(steps: Sequence[Mapping[str, Any]], store: Path) -> dict[str, dict[str, Any]]:
    """The provenance records of `steps` and of all their ancestors, read from the store; missing records are
    skipped."""
    from pipelines.lineage.provenance import RECORD

    records: dict[str, dict[str, Any]] = {}
    queue = [step["fingerprint"] for step in steps]
    while queue:
        fingerprint = queue.pop()
        path = store / fingerprint / RECORD
        if fingerprint not in records and path.is_file():
            records[fingerprint] = json.loads(path.read_text(encoding="utf-8"))
            queue += records[fingerprint]["parents"].values()
    return {fingerprint: records[fingerprint] for fingerprint in sorted(records)}
