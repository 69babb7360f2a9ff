"""The dataset as a report shows it: counts of its tables, what each step dropped and why, results of the validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.components import listed
from pipelines.messages.translation import message, translatable
from pipelines.reports.elements.wording import plain
from pipelines.task_families import TaskFamily

STEP_NAMES = {
    "collect": translatable("collecting"),
    "clean": translatable("cleaning"),
    "deduplicate": translatable("removing duplicates"),
    "decontaminate": translatable("removing overlap with validation and test"),
}
"""Step of the preparation → how it is shown."""
UNLABELLED = translatable("{name}: {family}")
OF_CLASSES = translatable("{name}: {family}, {count} classes: {labels}")
OF_LABELS = translatable("{name}: {family}, {count} labels: {labels}")


def describe_data(summary: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of every table, what each step dropped and why, and the results of the validation."""
    family = TaskFamily.model_validate(summary["family"]) if "family" in summary else TaskFamily.default()
    drops = []
    before: dict[str, int] = {}
    for step in summary.get("steps", []):
        for table, counts in sorted(step["tables"].items()):
            for reason, texts in sorted(counts.get("dropped", {}).items()):
                drops.append(
                    {
                        "step": message(STEP_NAMES[step["step"]]) if step["step"] in STEP_NAMES else step["step"],
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
        "family": plain(family.name),
        "labels": summary.get("labels", []),
        "listed_labels": listed(summary.get("labels", [])),
        "classes": bool(summary.get("examples_of_label", {}).get("train")),
        "tasks": _named_tasks(summary),
        "tables": [
            (name, tables[name], checks.get(name))
            for name in (*order, *(name for name in tables if name not in order))
            if name in tables
        ],
        "shown": [_example(family, example) for example in summary.get("shown", [])[:3]]
        + [
            _example(TaskFamily.model_validate(one["family"]), example)
            for one in summary.get("tasks", {}).values()
            for example in one.get("shown", [])[:1]
        ],
        "drops": drops,
        "success": verdict.get("success"),
        "checked": sum(table["checked"] for table in checks.values()),
        "failed": [(table, entry) for table, result in checks.items() for entry in result["failed"]],
        "data_docs": verdict.get("data_docs"),
    }


def _named_tasks(summary: Mapping[str, Any]) -> list[str]:
    """The further tasks of a dataset that has several, each with its family and its classes or labels, if any."""
    described = []
    for name, task in summary.get("tasks", {}).items():
        labels = task.get("labels", [])
        classes = task.get("examples_of_label", {}).get("train")
        sentence = OF_CLASSES if labels and classes else OF_LABELS if labels else UNLABELLED
        described.append(
            message(sentence, name=name, family=plain(task["family"]), count=len(labels), labels=listed(labels))
        )
    return described


def _example(family: TaskFamily, example: Mapping[str, Any]) -> dict[str, str]:
    """The text of an example and its reference answer."""
    targets = [name for name in family.target if family.columns[name] in ("string", "double")]
    answer = str(example[targets[0]]) if targets else family.answer_text(example)
    return {"answer": answer, "text": family.text(example)}
