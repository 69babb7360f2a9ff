"""The small dataset with further tasks and corpora, made of real text: documentation of the standard library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.pipelines.corpora.small_dataset import PARAMS, documents, write_jsonl, write_small_dataset

NAMED = """\
    tasks:
      topics:
        train: texts/topics_train.jsonl
        test: texts/topics_test.jsonl
        labels_per_class: 4
      pairs:
        family: pair_regression
        train: texts/pairs_train.jsonl
        validation: texts/pairs_validation.jsonl
        test: texts/pairs_test.jsonl
    corpora:
      letters: texts/letters.jsonl
      pages:
        sources: [{path: texts/pages.jsonl, values: {language: en}}]
        columns: {words: list<string>, boxes: list<list<int64>>, note: string, language: string}
"""
PACKAGES = ("urllib", "json", "xml", "concurrent")


def write_named_dataset(root: Path, main: bool = True) -> None:
    """params.yaml and texts/ under `root`; without `main`, the first of the named tasks is the main one."""
    write_small_dataset(root)
    params = PARAMS if main else PARAMS[: PARAMS.index("    task:")]
    (root / "params.yaml").write_text(params + NAMED)
    texts = root / "texts"
    write_jsonl(texts / "topics_train.jsonl", labelled(0, 12))
    write_jsonl(texts / "topics_test.jsonl", labelled(12, 18))
    for part, (begin, end) in {"train": (0, 20), "validation": (20, 30), "test": (30, 40)}.items():
        write_jsonl(texts / f"pairs_{part}.jsonl", pairs(begin, end))
    write_jsonl(texts / "letters.jsonl", ({"text": text} for text in documents("email")[60:90]))
    write_jsonl(texts / "pages.jsonl", map(page, documents("tkinter")[:40]))


def labelled(begin: int, end: int) -> Iterator[dict[str, Any]]:
    """Examples of three packages that no other table of the dataset has."""
    for name in PACKAGES[:3]:
        for text in documents(name)[begin:end]:
            yield {"text": text, "label": name}


def pairs(begin: int, end: int) -> Iterator[dict[str, Any]]:
    """Neighbouring documents, and how many words they share."""
    known = documents("tkinter")[40:]
    for first, second in zip(known[begin:end], known[begin + 40 : end + 40], strict=True):
        a, b = set(first.lower().split()), set(second.lower().split())
        yield {"text_a": first, "text_b": second, "label": round(5 * len(a & b) / len(a | b), 3)}


def page(text: str) -> dict[str, Any]:
    """A text, its words, and where they are on a page of ten words a line."""
    words = text.split()
    boxes = [[100 * (n % 10), 20 * (n // 10), 100 * (n % 10) + 90, 20 * (n // 10) + 15] for n in range(len(words))]
    return {"text": text, "words": words, "boxes": boxes, "note": f"{len(words)} words"}


def append(path: Path, record: dict[str, Any]) -> None:
    """Add a record to a file."""
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")
