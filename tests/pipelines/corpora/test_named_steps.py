"""Named tasks and corpora through all steps: what is written, what is protected, what a mistake in the data says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.corpora.leaks.ledger import COLUMNS, LEDGER
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.corpora.settings.tables import all_tables
from pipelines.corpora.shards.digests import dvc_digest, read_digests
from pipelines.corpora.shards.tables import read_rows
from pipelines.corpora.shards.writing import read_json
from pipelines.corpora.steps.clean import clean
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.decontaminate import decontaminate
from pipelines.corpora.steps.deduplicate import deduplicate
from pipelines.corpora.steps.pin import pin, pinned
from pipelines.corpora.steps.select import select
from pipelines.corpora.steps.split import split
from pipelines.corpora.steps.step import prepared, table_path
from pipelines.errors import DataError
from pipelines.reports.cards.card import card
from pipelines.task_families.labelled_tables import NAMED
from tasks.quality.validate import validate
from tests.pipelines.corpora.named_dataset import append, labelled, page, pairs, write_named_dataset
from tests.pipelines.corpora.small_dataset import documents, write_small_dataset

STEPS = (pin, collect, clean, deduplicate, decontaminate, select, split)


def run(root: Path, *further: Callable[[str, Path], None]) -> Path:
    for step in (*STEPS, *further):
        step("small", root)
    return prepared("small", root)


def rows(home: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(table_path(home, name)).to_pylist()
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with a main task, two named ones and two corpora, in which every kind of table overlaps a test set."""
    root = tmp_path_factory.mktemp("named")
    write_named_dataset(root)
    texts = root / "texts"
    topic = next(text for text in documents("xml")[12:18] if len(text.split()) > 20)
    (pair, *_) = [one for one in pairs(30, 40) if len(one["text_a"].split()) > 15]
    append(texts / "letters.jsonl", {"text": f"A letter that quotes a test:\n{topic}"})
    append(texts / "pages.jsonl", page("A page of its own, with no word of any test.") | {"note": topic})
    append(texts / "general" / "two.jsonl", {"text": f"{pair['text_a']}\n{pair['text_b']}"})
    append(texts / "pairs_train.jsonl", {"text_a": topic, "text_b": "Another sentence.", "label": 1.0})
    for text in documents("asyncio")[:24]:  # tasks may train on the same texts, with labels or without
        first, _, rest = text.partition("\n")
        if rest.strip():
            append(texts / "pairs_train.jsonl", {"text_a": first, "text_b": rest, "label": 2.0})
    return run(root, validate, card)


def test_every_table_is_written_with_its_columns(home: Path) -> None:
    settings = load_dataset("small", home.parents[2])
    assert set(all_tables(settings)) >= {"letters", "pages", "topics.train", "pairs.test", "train", "general"}
    assert [one["label"] for one in rows(home, "topics.train")].count("xml") == 4, "labels_per_class: 4"
    assert set(rows(home, "pairs.validation")[0]) == {"text", "text_a", "text_b", "label", "source"}
    pages = rows(home, "pages")
    assert {len(one["words"]) == len(one["boxes"]) == int(one["note"].split()[0]) for one in pages} == {True}
    assert {one["language"] for one in pages} == {"en"} and len(pages) > 30
    schema = pq.read_schema(table_path(home, "pages") / "00000.parquet")
    assert str(schema.field("boxes").type) == "list<element: list<element: int64>>"


def test_digests_are_those_of_the_tables_and_the_card_shows_each(home: Path) -> None:
    digests = read_digests(home / NAMED)
    assert digests == {name: dvc_digest(table_path(home, name)) for name in digests} and len(digests) == 8
    text = (home / "card.md").read_text()
    assert all(f"| {name} |" in text for name in digests) and "config_name: pairs" in text
    assert "path: named/pairs.test.parquet" in text and "Answers of topics" in text


def test_every_table_is_judged_and_whatever_overlaps_a_test_of_any_task_is_taken_out(home: Path) -> None:
    assert set(read_json(home / "verdict.json")["tables"]) == set(all_tables(load_dataset("small", home.parents[2])))
    overlaps = {
        (row["table"], row["part"])
        for row in (dict(zip(COLUMNS.names, one, strict=True)) for one in read_rows(home / "decontaminated" / LEDGER))
    }
    expected = {
        ("letters", "topics.test"),
        ("pages", "topics.test"),
        ("general", "pairs.test"),
        ("pairs.train", "topics.test"),
    }
    assert overlaps >= expected
    assert not [one for one in rows(home, "pages") if "no word of any test" in one["text"]], "by its column `note`"
    shared = {"".join(one["text"].split()) for one in rows(home, "pairs.train")}
    assert shared & {"".join(one["text"].split()) for one in rows(home, "task_text")}
    tests = {one["text"] for task in ("topics.", "pairs.", "") for one in rows(home, f"{task}test")}
    learned = ("general", "domain", "letters", "pages", "task_text", "train", "topics.train", "pairs.train")
    assert not tests & {one["text"] for name in learned for one in rows(home, name)}


def test_without_a_task_the_first_named_one_is_the_main_one(tmp_path: Path) -> None:
    write_named_dataset(tmp_path, main=False)
    params = tmp_path / "params.yaml"
    text = params.read_text()
    params.write_text(text[: text.index("    corpora:")])
    home = run(tmp_path)
    summary = read_json(home / "summary.json")
    assert summary["family"] == "text_classification" and summary["tasks"]["topics"]["labels"] == summary["labels"]
    assert {one["label"] for one in rows(home, "train")} == {"urllib", "json", "xml"}
    assert sorted(read_digests(home / NAMED)) == ["pairs.test", "pairs.train", "pairs.validation"]
    assert len(rows(home, "task_text")) > 10, "training texts that lost their labels"


def test_a_dataset_without_names_has_an_empty_folder_and_an_unchanged_pin(tmp_path: Path) -> None:
    write_small_dataset(tmp_path)
    home = run(tmp_path)
    assert [path.name for path in (home / NAMED).iterdir()] == ["tables.json"] and read_digests(home / NAMED) == {}
    steps = pinned("small", load_dataset("small", tmp_path), tmp_path)["steps"]
    new = {"tasks", "corpora", "families", "main"}
    assert not [name for name, step in steps.items() if new & set(step.get("settings", {}))]


def test_a_text_whose_columns_would_no_longer_fit_is_dropped_and_others_are_repaired_with_it(tmp_path: Path) -> None:
    write_named_dataset(tmp_path)
    pages = tmp_path / "texts" / "pages.jsonl"
    long = " ".join(f"word{number}" for number in range(60))
    append(pages, page(long))
    append(pages, page("A text with  two spaces and an address, see below.") | {"note": "write to a.b@example.org"})
    params = tmp_path / "params.yaml"
    params.write_text(params.read_text() + "    clean: {max_characters: 300, masks: [email]}\n")
    for step in (pin, collect, clean):
        step("small", tmp_path)
    home = prepared("small", tmp_path)
    cleaned = pq.read_table(home / "cleaned" / "pages").to_pylist()
    assert not [one for one in cleaned if one["text"].startswith("word0")]
    dropped = read_json(home / "cleaned" / "counts.json")[-1]["tables"]["pages"]["dropped"]
    assert dropped["too long"] >= 1
    (masked,) = [one for one in cleaned if one["text"].startswith("A text with")]
    assert masked["note"] == "write to [EMAIL]" and len(masked["words"]) == len(masked["boxes"])


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"text": "a", "words": ["a"], "boxes": [[1]]}, "pages.jsonl:41: there is no column 'note'"),
        ({"text": "a", "words": ["a"], "boxes": [[1]], "note": None}, "pages.jsonl:41: the declared column 'note' is"),
        (
            {"text": "a", "words": ["a"], "boxes": [1], "note": "b"},
            "pages.jsonl:41: the column 'boxes' holds [1], expected a list of lists of",
        ),
    ],
)
def test_a_record_without_a_declared_column_is_named(tmp_path: Path, record: dict[str, Any], says: str) -> None:
    write_named_dataset(tmp_path)
    append(tmp_path / "texts" / "pages.jsonl", record)
    pin("small", tmp_path)
    with pytest.raises(DataError) as error:
        collect("small", tmp_path)
    assert says in str(error.value) and "bad_records: skip" in str(error.value)


def test_a_named_task_that_cannot_be_learned_is_named(tmp_path: Path) -> None:
    write_named_dataset(tmp_path)
    append(tmp_path / "texts" / "topics_test.jsonl", next(labelled(0, 1)) | {"label": "ftp"})
    pin("small", tmp_path)
    with pytest.raises(DataError, match=r"tasks\.topics: the test split has the label 'ftp'"):
        collect("small", tmp_path)
