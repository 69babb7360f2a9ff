"""Labelled rows that are no examples: named with their place, or left out and counted by reason with samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpora.examples.files import ExampleReader
from pipelines.corpora.shards.tally import Tally
from pipelines.errors import DataError
from tests.pipelines.corpora.test_examples import ROWS, family, read, write


def test_an_id_that_names_two_records_is_told_with_both_places(tmp_path: Path) -> None:
    row = {"id": "q1", "text": "gut", "label": "1"}
    path = write(tmp_path / "a.jsonl", "text_classification", [row, row])
    assert len(read(path, "text_classification")) == 2, "a plain copy is for the step that deduplicates"
    write(path, "text_classification", [row, row | {"id": "q2"}, row | {"text": "schlecht"}])
    with pytest.raises(DataError, match=r"a\.jsonl:3: the id 'q1' is also that of another record, a\.jsonl:1"):
        read(path, "text_classification")


def test_bad_rows_are_counted_by_reason_with_samples(tmp_path: Path) -> None:
    good = ROWS["tagging"][0]
    changes: list[dict[str, Any]] = [
        {}, {"tags": ["O", "I-x", "I-y"]}, {"tags": ["O"]}, {"tags": ["I-x", "O", "O"]}, {"tokens": 3},
    ]  # fmt: skip
    rows = [good | change for change in changes] + [{"tokens": ["a"]}]
    path, tally = write(tmp_path / "a.jsonl", "tagging", rows), Tally()
    reader = ExampleReader(family("tagging"), tally, part="train", drop_bad_rows=True)
    assert [example for example, _ in reader.read("a.jsonl", path)] == [good]
    assert tally.dropped == {
        "train: tags begins an entity with I-": 2,
        "train: not as many tags as tokens": 1,
        "train: tokens is not a list of texts": 1,
        "train: no column 'tags'": 1,
    }
    assert reader.value_counts["train: tags begins an entity with I-"] == 3, "one row has two such places"
    samples = tally.counts()["samples"]["train: not as many tags as tokens"]
    assert [sample["source"] for sample in samples] == ["a.jsonl:3"]
    assert samples[0]["excerpt"].startswith("the column 'tags' holds 1 tags for 3 tokens | {")


def test_rows_that_cannot_be_read_are_bad_rows_and_a_file_that_cannot_is_a_mistake(tmp_path: Path) -> None:
    good, name = ROWS["text_classification"][0], "text_classification"
    path, tally = tmp_path / "a.jsonl", Tally()
    path.write_bytes(json.dumps(good).encode() + b'\n{"text": \n\xff\xfe\n[1]\n' + json.dumps(good).encode())
    reader = ExampleReader(family(name), tally, part="test", drop_bad_rows=True)
    assert [example for example, _ in reader.read("a.jsonl", path)] == [good, good]
    assert tally.dropped == {"test: malformed JSON": 2, "test: not UTF-8": 1}
    with pytest.raises(DataError, match=r"a\.jsonl:2: not a JSON object: .*'bad_rows: drop'"):
        read(path, name)
    path.write_bytes(b"\x89PNG\x00")
    with pytest.raises(DataError, match="not a text file but a PNG image"):
        list(ExampleReader(family(name), Tally(), drop_bad_rows=True).read("a.jsonl", path))


def test_a_quote_that_is_never_closed_is_told_where_it_opened(tmp_path: Path) -> None:
    path, tally = tmp_path / "a.csv", Tally()
    rows = [f"text {number},{number % 2}\n" for number in range(3000)]
    rows[6] = '"text 6,0\n'
    path.write_text("text,label\n" + "".join(rows))
    with pytest.raises(DataError, match=r"a\.csv:8: a quote that opens in this row is never closed"):
        read(path, "text_classification")
    reader = ExampleReader(family("text_classification"), tally, drop_bad_rows=True)
    assert len(list(reader.read("a.csv", path))) == 2999 and tally.dropped == {"broken quotes": 1}
