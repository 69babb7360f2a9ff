"""The report of one execution: a single HTML page that needs nothing but itself.

`render_report` reads the store (`metrics.jsonl` of every step, `evaluation.json` of the evaluate stages) and what its
caller knows (the execution, the provenance records, the data's summary and verdict). It decides no number: everything
shown was measured by an evaluation or recorded beside an artifact.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.evaluations.found import read_judged, score_tables
from pipelines.task_families import TaskFamily

TEMPLATE = "report.html"
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
) -> Path:
    """Write the page of `execution` to the file `out` and return it.

    `records` maps fingerprints to provenance records: those of the execution's steps and of all their ancestors.
    `store` holds a folder for each fingerprint; `summary` and `verdict` are the dataset's, `{}` where there is none.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from pipelines.evaluations.page import axes, comparisons, wording, words
    from pipelines.evaluations.page.ancestry import draw_ancestry
    from pipelines.evaluations.page.curves import draw_lineage_curves, draw_stage_curves, read_curves

    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {
        "count": axes.count,
        "percent": axes.percent,
        "points": axes.points,
        "duration": axes.duration,
        "score": wording.score,
        "difference": wording.difference,
        "measured_in": wording.measured_in,
        "metric_name": wording.metric_name,
        "capital": wording.capital,
    }
    pages.globals["span"] = wording.span
    steps = execution["steps"]
    judged = read_judged(store, [(one["stage"], one["fingerprint"]) for one in steps if one["kind"] == "evaluate"])
    compared = [comparisons.compare(table, execution, records) for table in score_tables(judged)]
    vectors = [
        words.describe_words(one.stage, section)
        for one in judged
        for section in one.sections.values()
        if any("neighbours" in model for model in section.get("models", ()))
    ]
    footprints = [
        section
        for one in judged
        for section in one.sections.values()
        if any("latency_ms" in model for model in section.get("models", ()))
    ]
    curves = read_curves(steps, records, store)
    page = pages.get_template(TEMPLATE).render(
        execution=execution,
        sentences=[
            *(sentence for comparison in compared for sentence in comparisons.sentences(comparison)),
            *(sentence for table in vectors for sentence in words.sentences(table)),
            *(sentence for footprint in footprints for sentence in _cheaper(footprint["models"])),
        ],
        data=_data(summary, verdict),
        curves=draw_lineage_curves(curves) if curves else None,
        stage_curves=draw_stage_curves(curves),
        comparisons=compared,
        vectors=vectors,
        footprints=footprints,
        ancestry=draw_ancestry(steps, records) if records else None,
        steps=[_step(step, records) for step in steps],
        environment=_environment(execution, records),
        language=next((one.dataset["language"] for one in judged if "language" in one.dataset), None)
        or summary.get("language")
        or "en",
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(f".{out.name}")
    aside.write_text(page, encoding="utf-8")
    os.replace(aside, out)
    return out


def _cheaper(models: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the last of the models that were measured side by side saves."""
    from pipelines.evaluations.page.axes import percent

    first, last = models[0], models[-1]
    if first is last:
        return []
    faster = first["latency_ms"]["1"]["median"] / last["latency_ms"]["1"]["median"]
    return [
        f"{last['stage']} is {first['bytes'] / last['bytes']:.1f} times smaller than {first['stage']}, answers "
        f"one text {faster:.1f} times as fast, and agrees with it on {percent(last['agreement'])} of the texts."
    ]


def _data(summary: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of every table, what each step dropped and why, and what the validation said."""
    family = TaskFamily.model_validate(summary["family"]) if "family" in summary else TaskFamily.usually()
    drops = []
    before: dict[str, int] = {}
    for step in summary.get("steps", []):
        for table, counts in sorted(step["tables"].items()):
            for reason, number in sorted(counts.get("dropped", {}).items()):
                drops.append(
                    {
                        "step": STEP_NAMES.get(step["step"], step["step"]),
                        "table": table,
                        "reason": reason,
                        "number": number,
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
    order = ("general", "domain", "task_text", "train", "validation", "test")
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
    return {**step, "tokens": result.get("tokens") or 0, "parameters": result.get("parameters") or 0}


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
