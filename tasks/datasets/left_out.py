"""Lines about the texts and examples that preparation left out of a dataset, from its summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pipelines.messages.translation import message, template
from pipelines.reports.elements.reasons import reason_text
from pipelines.task_families.labelled_tables import PARTS, labelled_table, task_and_part


def left_out(summary: Mapping[str, Any], *, labelled: bool = False) -> list[str]:
    """One line for each table of which texts were dropped: how many, of how many, and for which reasons.

    With `labelled`, only tables of labelled examples. Examples that `labels_per_class` leaves without a label are not
    counted.
    """
    return [
        _line(table, reasons, _total(summary, table, reasons))
        for table, reasons in _dropped(summary).items()
        if task_and_part(table) or not labelled
    ]


def _dropped(summary: Mapping[str, Any]) -> dict[str, Counter[str]]:
    """Table → reason → number of dropped texts, of all steps. A task's examples are counted by the part they are of."""
    result: dict[str, Counter[str]] = {}
    for step in summary["steps"]:
        for name, counts in step["tables"].items():
            for reason, number in counts["dropped"].items():
                part, separator, rest = reason.partition(": ")
                named = bool(separator) and part in PARTS
                table = labelled_table(name, part) if named else name
                result.setdefault(table, Counter())[rest if named else reason] += number
    return result


def _total(summary: Mapping[str, Any], table: str, reasons: Counter[str]) -> int | None:
    """Number of texts before any was dropped; None of training examples, some of which may be kept without label."""
    if task_and_part(table):
        is_train = table.rpartition(".")[2] == PARTS[0]
        return None if is_train else summary["tables"][table]["documents"] + sum(reasons.values())
    first = summary["steps"][0]["tables"]
    return first[table]["documents"] if table in first else None


def _line(table: str, reasons: Counter[str], total: int | None) -> str:
    dropped = sum(reasons.values())
    each = [
        message("{number:,} {reason}", number=number, reason=reason_text(reason))
        for reason, number in reasons.most_common()
    ]
    listing, named = template(", ").join(each), template(table)
    if total is None:
        return message("left out  {table}: {dropped:,} ({reasons})", table=named, dropped=dropped, reasons=listing)
    return message(
        "left out  {table}: {dropped:,} of {total:,} ({reasons})",
        table=named,
        dropped=dropped,
        total=total,
        reasons=listing,
    )
