"""Load every set of a folder of datasets with the loaders of the task families, check every row, and print the results.

    python -m benchmarks.datasets --folder ../datasets            # all sets and corpora of its MANIFEST.json
    python -m benchmarks.datasets --folder ../datasets cmrc2018   # some of them

The folder has the format of docs/data.md's development sets: `MANIFEST.json` names the files of every set by split, and
its `format`. Prints one line per set: its family, the number of valid rows of each split, and the invalid ones by
reason; `(n occurrences)` if a row has an error more than once. Exits with status 1 when a set could not be loaded, or
has another number of records than the manifest.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.corpora.examples.files import Example, ExampleReader
from pipelines.corpora.examples.side_tables import read_side_tables
from pipelines.corpora.reading import read_texts, records
from pipelines.corpora.reading.options import ReadOptions
from pipelines.corpora.reading.parts import whole_file
from pipelines.corpora.shards.tables import labelled
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.collect import check_labels
from pipelines.errors import CursusError
from pipelines.task_families import TaskFamily

FAMILIES = {
    "cls": "text_classification",
    "pair": "pair_classification",
    "tag": "tagging",
    "squad": "span_extraction",
    "mc": "multiple_choice",
    "coref": "span_pair_classification",
    "span_pair": "span_pair_classification",
    "table_qa": "table_questions",
    "layout": "layout_tagging",
    "receipt": "layout_tagging",
    "minimal_pair": "minimal_pairs",
    "parallel": "text_generation",
    "kg": "link_prediction",
    "conllu": "dependency_parsing",
}
"""Task family by format of the manifest."""
OF_SET = {
    "stsb_en": "pair_regression",
    "stsb_zh": "pair_regression",
    "wordsim_240": "pair_regression",
    "wordsim_297": "pair_regression",
    "opinion_lexicon": "text_classification",
    "en_zh_word_dict": "text_generation",
    "ca8_semantic": "word_analogies",
    "ca8_morphological": "word_analogies",
}
"""Task family of sets whose format does not determine it."""
COLUMNS = {
    "cc_cedict": ("traditional", "simplified", "pinyin", "glosses"),
    "cilin": ("code", "relation", "words"),
    "antonyms_zh": ("word", "antonym"),
    "english_wordnet": ("synset", "part_of_speech", "members", "hypernyms", "definition"),
    "ppdb_lexical": ("word", "paraphrase"),
}
"""Columns of word lists, which have no task: they are read as records."""
MAY_BE_EMPTY = {"hypernyms"}


PARTS = {"train": "train", "validation": "dev", "test": "test"}
"""Split of the manifest by part of a task."""


@dataclass
class Report:
    """The result of checking one set."""

    name: str
    family: str
    rows: dict[str, int] = field(default_factory=dict)
    bad: dict[str, Counter[str]] = field(default_factory=dict)
    """Invalid rows by split and reason."""
    occurrences: Counter[str] = field(default_factory=Counter)
    samples: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failed: bool = False

    def fail(self, why: str) -> None:
        """Mark the set as failed."""
        self.notes.append(f"FAILED: {why}")
        self.failed = True

    def check(self, split: str, expected: int) -> None:
        """Fail unless valid and invalid rows add up to the `expected` records of the split."""
        entries = self.rows.get(split, 0) + self.bad[split].total()
        if entries != expected:
            self.fail(f"{split} has {entries} records, the manifest has {expected}")

    def line(self) -> str:
        """Render as a row of a Markdown table."""
        rows = ", ".join(f"{split} {count:,}" for split, count in self.rows.items())
        bad = []
        for reason, count in (pair for entries in self.bad.values() for pair in entries.items() if pair[1]):
            occurrences = self.occurrences.get(reason, count)
            bad.append(f"{reason} {count}" + (f" ({occurrences} occurrences)" if occurrences != count else ""))
        return f"| {self.name} | {self.family} | {rows} | {'; '.join(bad) or '0'} | {'; '.join(self.notes)} |"


def main() -> int:
    """Print the tables; 1 when something could not be loaded."""
    arguments = argparse.ArgumentParser(description="Load and check every set of a folder of datasets.")
    arguments.add_argument("--folder", type=Path, required=True, help="the folder that holds MANIFEST.json")
    arguments.add_argument("names", nargs="*", help="sets and corpora; none: all")
    options = arguments.parse_args()
    known = json.loads((options.folder / "MANIFEST.json").read_text(encoding="utf-8"))
    failed = 0
    print("| set | family | rows | invalid rows | changed values, notes |\n|---|---|---|---|---|")
    for load, entries in ((_labelled_set, known["datasets"]), (_corpus, known["corpora"])):
        for entry in entries:
            if not options.names or entry["name"] in options.names:
                report = load(options.folder, entry)
                failed += report.failed
                print(report.line(), flush=True)
    return bool(failed)


def _labelled_set(folder: Path, entry: Mapping[str, Any]) -> Report:
    if entry["name"] in COLUMNS:
        return _word_list(folder, entry)
    family = TaskFamily.model_validate(OF_SET.get(entry["name"]) or FAMILIES[entry["format"]])
    report = Report(entry["name"], family.name)
    files = {name.partition(".")[0]: folder / file["path"] for name, file in entry["files"].items()}
    try:
        tables = read_side_tables(family, {name: str(files[name]) for name in family.side_tables}, folder)
        examples = {
            split: _examples(report, family, tables, split, path)
            for split, path in files.items()
            if split not in tables
        }
        family.complete(examples)
        for split, rows in examples.items():
            pa.Table.from_pylist([{"text": family.text(row), **row} for row in rows], labelled(family))
            report.check(split, entry["splits"][split])
        if "train" in examples:
            check_labels({part: examples.get(split, []) for part, split in PARTS.items()}, family)
    except CursusError as error:
        report.fail(str(error))
    return report


def _examples(report: Report, family: TaskFamily, tables: Mapping[str, Any], split: str, path: Path) -> list[Example]:
    tally = Tally()
    reader = ExampleReader(family, tally, tables=tables, part=split, drop_bad_rows=True)
    entries = [example for example, _ in reader.read(path.name, path)]
    report.rows[split] = len(entries)
    report.bad[split] = tally.dropped
    report.occurrences.update(reader.value_counts)
    report.notes += [f"{reason} {times}" for reason, times in tally.changed.items()]
    report.samples |= tally.counts()["samples"]
    return entries


def _word_list(folder: Path, entry: Mapping[str, Any]) -> Report:
    report = Report(entry["name"], "– (records of " + ", ".join(COLUMNS[entry["name"]]) + ")")
    for split, file in entry["files"].items():
        path = folder / file["path"]
        bad: Counter[str] = Counter()
        try:
            for where, record in records(path.name, path, COLUMNS[entry["name"]]):
                blank = next(
                    (key for key, value in record.items() if not value.strip() and key not in MAY_BE_EMPTY), None
                )
                if blank is None:
                    report.rows[split] = report.rows.get(split, 0) + 1
                else:
                    reason = f"{split}: {blank} is empty"
                    bad[reason] += 1
                    report.samples.setdefault(reason, [{"source": where, "excerpt": str(record)}])
        except CursusError as error:
            report.fail(str(error))
        report.bad[split] = bad
        report.check(split, entry["splits"][split])
    return report


def _corpus(folder: Path, entry: Mapping[str, Any]) -> Report:
    report = Report(entry["name"], "– (plain text)")
    for split, file in entry["files"].items():
        path = folder / file["path"]
        part = split.partition("-")[0]
        try:
            texts = [bool(text.strip()) for text, _ in read_texts(whole_file(path.name, path), ReadOptions())]
        except CursusError as error:
            report.fail(str(error))
            continue
        report.rows[part] = report.rows.get(part, 0) + sum(texts)
        report.bad.setdefault(part, Counter()).update({f"{part}: text is empty": len(texts) - sum(texts)})
    for part in report.rows:
        report.check(part, entry["stats"][f"{part}_docs"])
    return report


if __name__ == "__main__":
    sys.exit(main())
