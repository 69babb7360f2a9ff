"""Every text once: what evaluates keeps it, then what carries labels, then the smaller corpus."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipelines.corpora.overlap import text_key
from pipelines.corpora.settings import load_dataset
from pipelines.corpora.step import prepared, run_step
from pipelines.corpora.tables import TEXTS, Row, example_of, labelled_parts, read_rows, write_rows
from pipelines.corpora.writing import read_json, write_json, written_aside
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily

KEEPS_FIRST = ("test", "validation", "train", "unlabelled")


def deduplicate(dataset: str, root: Path) -> None:
    """Write `deduplicated/` from `cleaned/`. DataError when nothing of a corpus is left."""
    family = load_dataset(dataset, root).task.family
    before = prepared(dataset, root) / "cleaned"
    history = read_json(before / "counts.json")
    with written_aside(prepared(dataset, root) / "deduplicated") as folder:
        seen: dict[bytes, str] = {}
        dropped: Counter[str] = Counter()
        task = unique_examples(list(read_rows(before / "task.parquet")), family, seen, dropped)
        tables = {
            "task": write_rows(folder / "task.parquet", labelled_parts(family), task) | {"dropped": dict(dropped)}
        }
        for name in ("domain", "general"):
            dropped = Counter()
            rows = unique_texts(read_rows(before / f"{name}.parquet"), name, seen, dropped)
            tables[name] = write_rows(folder / f"{name}.parquet", TEXTS, rows) | {"dropped": dict(dropped)}
            if not tables[name]["documents"]:
                raise DataError(
                    f"{dataset}: every text of {name!r} also stands in another table; give it other sources"
                )
        write_json(folder / "counts.json", [*history, {"step": "deduplicate", "tables": tables}])


def unique_examples(rows: list[Row], family: TaskFamily, seen: dict[bytes, str], dropped: Counter[str]) -> list[Row]:
    """The task's rows without copies, in their order.

    Copies in one part that disagree on the answer all go where answers are a closed set; where they are open, as in
    translation, the first stays.
    """
    keys = [text_key(row[0]) for row in rows]
    examples = [example_of(family, row) for row in rows]
    closed = bool(family.labels([one for one, row in zip(examples, rows, strict=True) if row[-1] != "unlabelled"]))
    answers: dict[tuple[str, bytes], set[str]] = defaultdict(set)
    for key, row, one in zip(keys, rows, examples, strict=True):
        answers[row[-1], key].add(repr([one[name] for name in family.target]))
    kept: set[int] = set()
    for part in KEEPS_FIRST:
        for number, (key, row) in enumerate(zip(keys, rows, strict=True)):
            if row[-1] != part:
                continue
            if closed and len(answers[part, key]) > 1:
                dropped[f"{part}: same text, other label"] += 1
            elif key in seen:
                dropped[f"{part}: same text in {seen[key]}"] += 1
            else:
                seen[key] = part
                kept.add(number)
    return [row for number, row in enumerate(rows) if number in kept]


def unique_texts(rows: Iterable[Row], table: str, seen: dict[bytes, str], dropped: Counter[str]) -> Iterator[Row]:
    """The rows whose text has not been seen; `seen` learns them."""
    for row in rows:
        key = text_key(row[0])
        if key in seen:
            dropped[f"same text in {seen[key]}"] += 1
        else:
            seen[key] = table
            yield row


if __name__ == "__main__":
    run_step(deduplicate)
