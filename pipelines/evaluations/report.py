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

from pipelines.evaluations.stage import EVALUATION

TEMPLATE = "report.html"
METRIC_NAMES = {"accuracy": "accuracy", "macro_f1": "macro-F1"}
BASELINE_NAMES = {"majority": "majority class", "tfidf": "TF-IDF + logistic regression"}
WHAT_IT_ADDED = {
    "pretrain": "Pre-training on general text",
    "adapt_domain": "Further pre-training on the domain",
    "adapt_task": "Further pre-training on the task's own text",
}
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

    from pipelines.evaluations.page import axes
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
    }
    evaluation = _evaluation(execution, store)
    sections = evaluation.get("sections", {})
    comparison = _comparison(sections, execution, records)
    curves = read_curves(execution["steps"], records, store)
    page = pages.get_template(TEMPLATE).render(
        execution=execution,
        sentences=_sentences(sections, comparison),
        data=_data(summary, verdict),
        curves=draw_lineage_curves(curves) if curves else None,
        stage_curves=draw_stage_curves(curves),
        comparison=comparison,
        footprint=sections.get("footprint"),
        ancestry=draw_ancestry(execution["steps"], records) if records else None,
        steps=[_step(step, records) for step in execution["steps"]],
        environment=_environment(execution, records),
        language=evaluation.get("dataset", {}).get("language") or summary.get("language") or "en",
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(f".{out.name}")
    aside.write_text(page, encoding="utf-8")
    os.replace(aside, out)
    return out


def _evaluation(execution: Mapping[str, Any], store: Path) -> dict[str, Any]:
    """What the evaluate stages found, later ones adding sections to earlier ones."""
    found: dict[str, Any] = {}
    for step in execution["steps"]:
        path = store / step["fingerprint"] / EVALUATION
        if step["kind"] == "evaluate" and path.is_file():
            document = json.loads(path.read_text(encoding="utf-8"))
            found = {**document, "sections": {**found.get("sections", {}), **document["sections"]}}
    return found


def _comparison(
    sections: Mapping[str, Any], execution: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Rows and drawings for each metric, and each step of the ladder in words."""
    from pipelines.evaluations.page.scores import Row, draw_scores

    classification = sections.get("classification")
    if classification is None:
        return None
    baselines = sections.get("baselines", {}).get("baselines", [])
    plots = []
    for metric, title in METRIC_NAMES.items():
        rows = [_row(Row, BASELINE_NAMES.get(entry["name"], entry["name"]), entry[metric], True) for entry in baselines]
        rows += [_row(Row, entry["stage"], entry[metric], False) for entry in classification["stages"]]
        plots.append({"metric": title, "rows": rows, "svg": draw_scores(rows, title)})
    metric = classification["verdict_metric"]
    ladder = [
        {"what": _what(step, execution, records), "measured": step[metric], **step} for step in classification["ladder"]
    ]
    whole = classification["whole_ladder"]
    return {
        "texts": classification["texts"],
        "resamples": classification["resamples"],
        "metric": METRIC_NAMES[metric],
        "plots": plots,
        "ladder": ladder,
        "whole": {"measured": whole[metric], **whole} if whole else None,
        "stages": classification["stages"],
        "baselines": [{**entry, "title": BASELINE_NAMES.get(entry["name"], entry["name"])} for entry in baselines],
    }


def _row(row: type[Any], name: str, estimate: Mapping[str, Any], baseline: bool) -> Any:
    return row(name, estimate["mean"], estimate["low"], estimate["high"], tuple(estimate["per_seed"]), baseline)


def _what(step: Mapping[str, Any], execution: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]) -> str:
    """What the later stage of a ladder's step starts from that the earlier did not."""
    for planned in execution["steps"]:
        if planned["stage"] == step["to"]:
            parent = records.get(planned["parents"].get("start", ""))
            if parent is not None and parent["kind"] in WHAT_IT_ADDED:
                return WHAT_IT_ADDED[parent["kind"]]
    return f"{step['to']} instead of {step['from']}"


def _sentences(sections: Mapping[str, Any], comparison: Mapping[str, Any] | None) -> list[str]:
    """What was found, in the words of someone who has to decide something."""
    from pipelines.evaluations.page.axes import percent, points

    sentences = []
    if comparison:
        best = max(comparison["stages"], key=lambda entry: float(entry["accuracy"]["mean"]))
        score = best["accuracy"]
        sentences.append(
            f"The best model, {best['stage']}, classifies {percent(score['mean'])} of {comparison['texts']} test texts "
            f"correctly (95 % interval {percent(score['low'])} to {percent(score['high'])})."
        )
        sentences += [
            f"{entry['title']} reaches {percent(entry['accuracy']['mean'])} "
            f"({percent(entry['accuracy']['low'])} to {percent(entry['accuracy']['high'])})."
            for entry in comparison["baselines"]
            if entry["name"] != "majority"
        ]
        groups: dict[str, list[str]] = {}
        for step in comparison["ladder"]:
            groups.setdefault(step["verdict"], []).append(step["what"][0].lower() + step["what"][1:])
        words = {
            "pays": "What paid: {}.",
            "does not pay": "What did harm: {}.",
            "cannot tell": "Too close to tell: {}.",
        }
        sentences += [words[group].format("; ".join(groups[group])) for group in words if group in groups]
        if comparison["whole"]:
            whole = comparison["whole"]
            sentences.append(
                f"From {whole['from']} to {whole['to']}: {points(whole['measured']['difference'])} points of "
                f"{comparison['metric']} ({points(whole['measured']['low'])} to {points(whole['measured']['high'])})."
            )
    if models := sections.get("footprint", {}).get("models"):
        first, last = models[0], models[-1]
        if first is not last:
            faster = first["latency_ms"]["1"]["median"] / last["latency_ms"]["1"]["median"]
            sentences.append(
                f"{last['stage']} is {first['bytes'] / last['bytes']:.1f} times smaller than {first['stage']}, answers "
                f"one text {faster:.1f} times as fast, and agrees with it on {percent(last['agreement'])} of the texts."
            )
    return sentences


def _data(summary: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of every table, what each step dropped and why, and what the validation said."""
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
        "labels": summary.get("labels", []),
        "tables": [(name, tables[name], checks.get(name)) for name in order if name in tables],
        "shown": summary.get("shown", [])[:3],
        "drops": drops,
        "success": verdict.get("success"),
        "checked": sum(table["checked"] for table in checks.values()),
        "failed": [(table, entry) for table, result in checks.items() for entry in result["failed"]],
        "data_docs": verdict.get("data_docs"),
    }


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
