"""`python -m tests.pipelines.corpora.growth KIND FOLDER`: the largest memory of the data steps for some data, then for
four times as much, each as a line of JSON."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from pipelines.corpora.duplicates import shingles, sorted_keys
from pipelines.corpora.engines.work import reporting
from pipelines.corpora.shards import folders, tables
from pipelines.corpora.steps import shuffle
from pipelines.corpora.steps.clean import clean
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.decontaminate import decontaminate
from pipelines.corpora.steps.deduplicate import deduplicate
from pipelines.corpora.steps.pin import pin
from pipelines.corpora.steps.select import select
from pipelines.corpora.steps.split import split
from tests.pipelines.corpora.small_dataset import write_jsonl
from tests.small_corpus import documents

STEPS = (pin, collect, clean, deduplicate, decontaminate, select, split)
HELD = (
    (folders, "SHARD_BYTES"),
    (tables, "BYTES_IN_A_GROUP"),
    (shuffle, "BUCKET_BYTES"),
    (shuffle, "GROUP_BYTES"),
    (shuffle, "ROWS_IN_A_GROUP"),
    (shingles, "AT_ONCE"),
    (sorted_keys, "KEYS_AT_ONCE"),
)
"""Module and name of each bound on what is in memory at once."""
SCALE = 32
"""By what they are divided, so that ten megabytes are many times what they allow, as ten gigabytes are."""
FOUR = 4
PARAMS = """\
runtime: {processes: 1}
datasets:
  large:
    general: general
    domain: domain.txt
    clean: {max_characters: 100000000}
    task: {train: train.jsonl, test: test.jsonl, text: text, label: label}
"""


def words_of(generator: np.random.Generator, number: int) -> str:
    """That many real words in any order, with rare ones between."""
    known, drawn = _known(), list[str]()
    while len(drawn) < number:
        numbers = generator.integers(0, len(known), min(number - len(drawn), 1000))
        drawn += [known[each] for each in numbers]
        drawn[-1] = f"w{generator.integers(0, 2**62):x}"
    return " ".join(drawn)


@cache
def _known() -> list[str]:
    return sorted({word for text in documents("argparse", "http", "email") for word in text.split()})


def write(root: Path, *, files: int = 20, per_file: int = 20, words: int = 200, classes: int = 4) -> None:
    """The sources of a dataset: `files` of `per_file` texts each, and examples of `classes`."""
    generator = np.random.default_rng(0)
    (root / "general").mkdir(parents=True)
    (root / "params.yaml").write_text(PARAMS, encoding="utf-8")
    for number in range(files):
        with (root / "general" / f"{number}.txt").open("w", encoding="utf-8") as file:
            file.writelines(f"{words_of(generator, words)}\n\n" for _ in range(per_file))
    (root / "domain.txt").write_text("\n\n".join(words_of(generator, 200) for _ in range(20)), encoding="utf-8")
    for part, per_class in (("train", 8), ("test", 2)):
        labels = (f"class {number}" for number in range(classes) for _ in range(per_class))
        write_jsonl(root / f"{part}.jsonl", ({"text": words_of(generator, 20), "label": label} for label in labels))


def write_document(root: Path, thousands: int) -> None:
    """The sources of a dataset with one document of so many thousand words."""
    write(root)
    generator = np.random.default_rng(1)
    with (root / "general" / "long.txt").open("w", encoding="utf-8") as file:
        file.writelines(f"{words_of(generator, 1000)}\n" for _ in range(thousands))


KINDS: Mapping[str, Callable[[Path, int], None]] = {
    "text": lambda root, times: write(root, files=4 * times, per_file=1400),
    "files": lambda root, times: write(root, files=1250 * times, per_file=1, words=60),
    "document": lambda root, times: write_document(root, 200 * times),
    "classes": lambda root, times: write(root, classes=500 * times),
}
"""Kind → writes the sources, some number of times as large."""


def peak() -> int:
    """The largest memory that this process, or one that it has waited for, has had: bytes."""
    return 1024 * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measured(root: Path) -> dict[str, Any]:
    """What the steps need for the sources at `root`, and what they leave of them."""
    progress: list[str] = []
    with reporting(progress.append):
        for step in STEPS:
            step("large", root)
    prepared = root / "data" / "prepared" / "large"
    sizes = [path.stat().st_size for path in (root / "general").iterdir()]
    return {
        "files": len(sizes),
        "longest": max(sizes),
        "classes": len({*parquet.read_table(prepared / "train.parquet", columns=["label"])["label"].to_pylist()}),
        "texts": sum(parquet.read_metadata(path).num_rows for path in (prepared / "general").glob("*.parquet")),
        "peak": peak(),
        "progress": len(progress),
    }


if __name__ == "__main__":
    kind, folder = sys.argv[1:]
    for module, name in HELD:
        setattr(module, name, getattr(module, name) // SCALE)
    for times in (1, FOUR):
        KINDS[kind](Path(folder) / f"{times}", times)
        print(json.dumps(measured(Path(folder) / f"{times}")), flush=True)
