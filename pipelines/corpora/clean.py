"""Repair what reading leaves: line ends, control characters, spaces, empty, too short and overlong texts."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipelines.corpora.settings import CleanSettings, load_dataset
from pipelines.corpora.step import prepared, run_step
from pipelines.corpora.tables import TEXTS, Row, example_of, labelled_parts, read_rows, row_of, write_rows
from pipelines.corpora.writing import read_json, write_json, written_aside
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\u200b\ufffe\uffff]")
_TRAILING = re.compile(r"[ \t\u00a0\u3000]+$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")


def clean(dataset: str, root: Path) -> None:
    """Write `cleaned/` from `collected/`. DataError when nothing of a corpus is left."""
    settings = load_dataset(dataset, root)
    family, limits = settings.task.family, settings.clean
    before = prepared(dataset, root) / "collected"
    history = read_json(before / "counts.json")
    with written_aside(prepared(dataset, root) / "cleaned") as folder:
        tables = {}
        for name, schema in (("general", TEXTS), ("domain", TEXTS), ("task", labelled_parts(family))):
            dropped: Counter[str] = Counter()
            found = read_rows(before / f"{name}.parquet")
            rows = (
                cleaned_examples(found, family, limits, dropped) if name == "task" else cleaned(found, limits, dropped)
            )
            tables[name] = write_rows(folder / f"{name}.parquet", schema, rows) | {"dropped": dict(dropped)}
            if not tables[name]["documents"]:
                reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
                raise DataError(f"{dataset}: nothing of {name!r} is left after cleaning ({reasons})")
        write_json(folder / "counts.json", [*history, {"step": "clean", "tables": tables}])


def cleaned(rows: Iterable[Row], settings: CleanSettings, dropped: Counter[str]) -> Iterator[Row]:
    """Unlabelled rows with repaired texts, cut into pieces; `dropped` counts those that went, by reason."""
    for text, *others in rows:
        text = repaired(text)
        if not text:
            dropped["empty"] += 1
        elif len(text) < settings.min_characters:
            dropped["too short"] += 1
        else:
            yield from ((part, *others) for part in pieces(text, settings.max_characters))


def cleaned_examples(
    rows: Iterable[Row], family: TaskFamily, settings: CleanSettings, dropped: Counter[str]
) -> Iterator[Row]:
    """The rows of a task with all their texts repaired; `dropped` counts those that went, by reason.

    A single text that is too long keeps its beginning. Of an example that consists of several columns nothing can be cut
    without changing what is asked: it goes.
    """
    for row in rows:
        if row[-1] == "unlabelled":
            yield from cleaned([row], settings, dropped)
            continue
        example = family.repaired(example_of(family, row), repaired)
        text = family.text(example)
        if not text.strip():
            dropped["empty"] += 1
        elif family.problem(example):
            dropped["no example after repair"] += 1
        elif len(text) <= settings.max_characters:
            yield row_of(family, example, *row[-2:])
        elif "text" in family.columns:
            yield row_of(family, example | {"text": pieces(text, settings.max_characters)[0]}, *row[-2:])
        else:
            dropped["too long"] += 1


def repaired(text: str) -> str:
    """The text in Unicode's composed form, with `\\n` line ends, no control characters and no trailing spaces."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _BLANK_LINES.sub("\n\n", _TRAILING.sub("", _CONTROL.sub("", text))).strip()


def pieces(text: str, longest: int) -> list[str]:
    """The text in pieces of at most `longest` characters, cut after a paragraph, a line or a word if it can."""
    found = []
    while len(text) > longest:
        cut = longest
        for mark in ("\n\n", "\n", "。", ". ", " "):
            after = text.rfind(mark, longest // 2, longest)
            if after >= 0:
                cut = after + len(mark)
                break
        found.append(text[:cut].strip())
        text = text[cut:].strip()
    return [piece for piece in [*found, text] if piece]


if __name__ == "__main__":
    run_step(clean)
