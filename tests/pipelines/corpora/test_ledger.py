"""The leakage ledger: what overlaps the evaluation is found, told, and taken out, left or refused, as asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpora.duplicates.published import ExampleKeys, published_leaks
from pipelines.corpora.duplicates.shingles import Letters
from pipelines.corpora.leaks.evaluation_index import EvaluationIndex, EvaluationText, OverlapRules, with_hits
from pipelines.corpora.leaks.leaked_rows import leaked_rows as marks_of
from pipelines.corpora.shards.tables import read_rows
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.shards.writing import read_json
from pipelines.corpora.steps.clean import clean
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.decontaminate import decontaminate, leaks, without_overlap
from pipelines.corpora.steps.deduplicate import deduplicate
from pipelines.corpora.steps.pin import pin
from pipelines.corpora.steps.select import select
from pipelines.corpora.steps.split import split
from pipelines.corpora.steps.step import PLAIN, prepared
from pipelines.errors import DataError
from pipelines.reports.cards.ledger_page import page
from tests.pipelines.corpora.small_dataset import documents, write_small_dataset

RULES = OverlapRules(13, 0.5, 0.8, "words")


def long_tests() -> list[str]:
    """Texts of the test split with more than forty words."""
    return [text for text in documents("email")[24:40] if len(text.split()) > 40]


def leaking(root: Path, extra: str = "") -> Path:
    """The small dataset, whose general text holds test texts whole, as part of a longer one, and slightly changed."""
    write_small_dataset(root)
    one, two, three = long_tests()[:3]
    changed = " ".join(word if place % 40 != 39 else "changed" for place, word in enumerate(three.split()))
    lines = [one.upper(), f"{documents('http')[0]}\n{two}\nAnd more after it.", changed]
    with (root / "texts/general/two.jsonl").open("a") as file:
        file.writelines(json.dumps({"text": line}) + "\n" for line in lines)
    params = root / "params.yaml"
    params.write_text(params.read_text() + extra)
    for step in (pin, collect, clean, deduplicate):
        step("small", root)
    return prepared("small", root)


def ledger(home: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(home / "decontaminated/ledger.parquet").to_pylist()
    return found


def test_a_copy_a_part_and_a_changed_copy_are_in_the_ledger_and_gone(tmp_path: Path) -> None:
    home = leaking(tmp_path)
    decontaminate("small", tmp_path)
    rows = [row for row in ledger(home) if row["table"] == "general"]
    assert [row["kind"] for row in rows].count("exact") == 1
    assert {row["kind"] for row in rows} == {"exact", "ngram", "minhash"}
    for row in rows:
        assert row["part"] == "test" and row["action"] == "drop" and 0.5 <= row["overlap"] <= 1
        assert row["source"].startswith("two.jsonl:") and row["evaluation_source"].startswith("test.jsonl:")
    counts = read_json(home / "decontaminated/counts.json")[-1]["tables"]
    told = {each["kind"]: each["texts"] for each in counts["general"]["ledger"]}
    assert told == {kind: sum(row["kind"] == kind for row in rows) for kind in told} and len(told) == 3
    # a text that overlaps in two ways goes once
    gone = {row["source"] for row in rows if row["kind"] != "exact"}
    assert counts["general"]["dropped"] == {"overlap": len(gone)} and len(gone) == 2
    left = [row[0] for shard in sorted((home / "decontaminated/general").glob("*.parquet")) for row in read_rows(shard)]
    evaluated = [row[0] for row in read_rows(home / "decontaminated/task.parquet") if row[-1] != "train"]
    index = EvaluationIndex(evaluated, RULES)
    assert not any(hits for _, hits in with_hits([(text,) for text in left], index))
    shown = page("small", read_rows(home / "decontaminated/ledger.parquet"))
    assert "removed" in shown and "://" not in shown.split("<body>")[0], "nothing is loaded from elsewhere"


def test_overlap_may_stay_when_asked(tmp_path: Path) -> None:
    home = leaking(tmp_path, "    decontaminate: {action: warn}\n")
    before = {
        name: [row[1] for shard in sorted((home / "deduplicated" / name).glob("*.parquet")) for row in read_rows(shard)]
        for name in PLAIN
    }
    decontaminate("small", tmp_path)
    for name, sources in before.items():
        shards = sorted((home / "decontaminated" / name).glob("*.parquet"))
        assert [row[1] for shard in shards for row in read_rows(shard)] == sources
    assert {row["action"] for row in ledger(home) if row["table"] == "general" and row["kind"] != "exact"} == {"warn"}


def test_overlap_is_refused_when_asked_with_counts_and_examples(tmp_path: Path) -> None:
    home = leaking(tmp_path, "    decontaminate: {action: fail}\n")
    with pytest.raises(DataError, match=r"general/test \(exact\).*general/test \(ngram\)") as refused:
        decontaminate("small", tmp_path)
    assert "datasets.small.decontaminate.action" in str(refused.value) and "two.jsonl:" in str(refused.value)
    assert not (home / "decontaminated").exists()


def test_a_published_set_may_stay_whole_and_says_which_rows_are_clean(tmp_path: Path) -> None:
    write_small_dataset(tmp_path)
    copied, extended = long_tests()[:2]
    with (tmp_path / "texts/train.jsonl").open("a") as file:
        for text in (copied.lower(), f"{extended}\nA sentence more."):
            file.write(json.dumps({"sentence": text, "topic": "email"}) + "\n")
    params = tmp_path / "params.yaml"
    params.write_text(params.read_text() + "    decontaminate: {inside: keep}\n")
    for step in (pin, collect, clean, deduplicate, decontaminate, select, split):
        step("small", tmp_path)
    home = prepared("small", tmp_path)
    before = list(read_rows(home / "cleaned/task.parquet"))
    assert list(read_rows(home / "decontaminated/task.parquet")) == before
    told = read_json(home / "deduplicated/counts.json")[-1]["tables"]["task"]["published"]
    assert sum(told["across"].values()) >= 1
    found = pq.read_table(home / "decontaminated/leaks.parquet").to_pylist()
    test = [row for row in before if row[-1] == "test"]
    leaked_rows = {row["row"] for row in found if row["part"] == "test"}
    assert {test[row][0] for row in leaked_rows} >= {copied, extended} and len(leaked_rows) < len(test) / 2
    assert {row["action"] for row in ledger(home) if row["table"] == "train"} == {"keep"}
    assert set(marks_of(home / "test.parquet")) == leaked_rows and not marks_of(home / "train.parquet")


def test_train_gives_way_to_validation_and_validation_to_test() -> None:
    one, two, three = long_tests()[:3]
    rows = [
        (one, "a", "train:1", "train"),
        (f"{two} {two}", "a", "train:2", "train"),
        (f"Before. {three}", "b", "validation:1", "validation"),
        (two, "b", "validation:2", "validation"),
        (three, "a", "test:1", "test"),
    ]
    tally = Tally()

    def evaluated(rows: list[tuple[str, ...]], *parts: str) -> list[EvaluationText]:
        return [EvaluationText(row[0], row[-2], row[-1]) for row in rows if row[-1] in parts]

    left, found = without_overlap(rows, "validation", evaluated(rows, "test"), RULES, "drop", tally)
    left, more = without_overlap(left, "train", evaluated(left, "validation", "test"), RULES, "drop", tally)
    assert [row[-2] for row in left] == ["train:1", "validation:2", "test:1"]
    assert tally.dropped == {"validation: overlap": 1, "train: overlap": 1}
    assert {(row[2], row[4]) for row in found + more} == {("validation:1", "test:1"), ("train:2", "validation:2")}
    assert [row[:3] for row in leaks(rows, RULES)][:1] == [("test:1", "test", 0)] and not list(leaks(left, RULES))


@settings(deadline=None)
@given(st.lists(st.sampled_from("ab一二 "), max_size=30), st.data())
def test_a_batch_says_what_each_text_says_alone(letters: list[str], data: st.DataObject) -> None:
    rules = OverlapRules(3, 0.5, 0.8, "words")
    evaluated = ["a b a b a", "一二一二二", "b", ""]
    texts = ["".join(letters), data.draw(st.sampled_from(evaluated)), "a b a 一", ""]
    index = EvaluationIndex(evaluated, rules)
    together = index.hits(Letters.of(texts))
    assert together == [index.hits(Letters.of([text]))[0] for text in texts]
    for text, hits in zip(texts, together, strict=True):
        assert index.grams.overlap(text) == max(
            [hit.overlap for hit in hits if hit.kind == "ngram"], default=index.grams.overlap(text)
        )
        if text in evaluated[:3]:
            assert ("exact", evaluated.index(text), 1.0) in hits


@settings(deadline=None)
@given(st.lists(st.text("ab一二 ", max_size=14), max_size=12), st.lists(st.text("ab一二 ", max_size=14), max_size=6))
def test_what_is_learned_need_not_be_indexed(learned: list[str], evaluated: list[str]) -> None:
    """The hits of evaluation texts among many other texts are those in an index of these."""
    rules = OverlapRules(3, 0.5, 0.8, "words")
    straight = EvaluationIndex(learned, rules)
    expected = [straight.hits(Letters.of([text]))[0] for text in evaluated]
    assert EvaluationIndex(evaluated, rules).hits_among(iter(learned)) == expected


def test_copies_inside_a_set_are_counted_as_the_field_counts_them() -> None:
    examples = [
        ("x", "train", "a"),
        ("x", "train", "b"),
        ("y", "train", "a"),
        ("x", "test", "a"),
        ("x", "test", "a"),
        ("z", "dev", "a"),
    ]
    keys, parts, answers = zip(*examples, strict=True)
    texts = np.array([[ord(key), 0] for key in keys], np.uint64)
    found = published_leaks(ExampleKeys.of(texts, answers, parts, ["train", "dev", "test"]))
    assert found == {"repeats": {"train": 1, "test": 1}, "across": {"train/test": 2}, "two_answers": 1}


def test_the_page_shows_what_it_is_told_and_nothing_runs() -> None:
    row = ("<script>alert(1)</script>汉字", "general", "a:1", "test", "b:2", "ngram", 0.75, "x & y", "drop")
    shown = page("mine", [row] * 30)
    assert "&lt;script&gt;" in shown and "<script>" not in shown and "汉字" in shown and "x &amp; y" in shown
    assert shown.count("a:1") == 20 and ">30<" in shown and "prefers-color-scheme: dark" in shown
    assert "No text overlaps." in page("mine", [])
