"""A dataset small enough for tests and made of real text: documentation of the standard library, as files of a user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pipelines.corpora.documentation.docstrings import read_documentation
from pipelines.corpora.documentation.installation import python_files

LABELS = ("asyncio", "email", "unittest")

PARAMS = """\
datasets:
  small:
    general: texts/general
    domain: [{path: texts/domain.csv, text: body}]
    task:
      train: texts/train.jsonl
      test: texts/test.jsonl
      text: sentence
      label: topic
      labels_per_class: 8
"""


@cache
def documents(package: str) -> list[str]:
    """The documentation strings of a standard library package, each once."""
    files = {name: path for name, path in _installed().items() if name.startswith(f"python/{package}/")}
    return list(dict.fromkeys(text for text, _ in read_documentation(files)))


@cache
def _installed() -> dict[str, Path]:
    return python_files()


def write_small_dataset(root: Path) -> None:
    """params.yaml and texts/ under `root`."""
    (root / "texts" / "general").mkdir(parents=True)
    (root / "params.yaml").write_text(PARAMS)
    blocks = [text.replace("\n\n", "\n") for text in documents("importlib")[:60]]
    (root / "texts" / "general" / "one.txt").write_text("\n\n".join(blocks))
    write_jsonl(root / "texts" / "general" / "two.jsonl", ({"text": text} for text in documents("http")[:60]))
    rows = ['"' + text.replace('"', '""') + '"' for text in documents("logging")[:60]]
    (root / "texts" / "domain.csv").write_text("body\n" + "\n".join(rows) + "\n")
    write_jsonl(root / "texts" / "train.jsonl", examples(0, 24))
    write_jsonl(root / "texts" / "test.jsonl", examples(24, 40))


def examples(start: int, end: int) -> Iterator[dict[str, Any]]:
    """Labelled records, the same range of each label's documents."""
    for label in LABELS:
        for text in documents(label)[start:end]:
            yield {"sentence": text, "topic": label}


def write_jsonl(path: Path, records: Iterator[dict[str, Any]]) -> None:
    """One record a line."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
