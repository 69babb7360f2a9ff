"""The steps one after the other on a user's files, without DVC: what comes out, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.corpora.duplicates.overlap import text_key
from pipelines.corpora.shards.held_out import HELD_OUT
from pipelines.corpora.steps.clean import clean
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.decontaminate import decontaminate
from pipelines.corpora.steps.deduplicate import deduplicate
from pipelines.corpora.steps.drawing import assign_parts, draw_labelled
from pipelines.corpora.steps.pin import pin, pin_path
from pipelines.corpora.steps.select import select
from pipelines.corpora.steps.split import split
from pipelines.corpora.steps.step import CORPORA, TABLES, prepared, table_path
from pipelines.errors import CursusError, DataError
from pipelines.task_families import TaskFamily
from tests.pipelines.corpora.small_dataset import LABELS, documents, examples, write_jsonl, write_small_dataset

STEPS = (pin, collect, clean, deduplicate, decontaminate, select, split)


def run(root: Path) -> Path:
    for step in STEPS:
        step("small", root)
    return prepared("small", root)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_small_dataset(tmp_path)
    return tmp_path


def test_six_tables_come_out_and_nothing_stands_in_two(root: Path) -> None:
    tables = {name: pq.read_table(table_path(run(root), name)).to_pylist() for name in (*TABLES, HELD_OUT)}
    summary = json.loads((prepared("small", root) / "summary.json").read_text())
    assert summary["labels"] == sorted(LABELS)
    assert {name: len(rows) for name, rows in tables.items()} == {
        name: count["documents"] for name, count in summary["tables"].items()
    }
    assert summary["examples_of_label"]["train"] == dict.fromkeys(LABELS, 8)
    keys = [text_key(row["text"]) for rows in tables.values() for row in rows]
    assert len(set(keys)) == len(keys)
    assert set(tables["train"][0]) == {"text", "label", "source"} and set(tables["general"][0]) == {
        "text",
        "source",
        "collection",
    }


def test_the_same_files_give_the_same_bytes_wherever_they_stand(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    write_small_dataset(other)
    digests = [
        {
            file.relative_to(home).as_posix(): sha256(file.read_bytes()).hexdigest()
            for path in [table_path(home, name) for name in TABLES]
            for file in (sorted(path.iterdir()) if path.is_dir() else [path])
        }
        for home in (run(root), run(other))
    ]
    assert digests[0] == digests[1] and len(digests[0]) == len(TABLES) + len(CORPORA), "a corpus has a manifest too"
    assert pin_path("small", root).read_bytes() == pin_path("small", other).read_bytes()


def test_training_text_that_contains_a_test_text_is_taken_out(root: Path) -> None:
    long = max(documents("email")[24:40], key=len)
    with (root / "texts/general/two.jsonl").open("a") as file:
        file.write(json.dumps({"text": f"{documents('ctypes')[0]}\n{long}\nAnd more after it."}) + "\n")
        file.write(json.dumps({"text": long.upper()}) + "\n")
    home = run(root)
    texts = " ".join(pq.read_table(home / "general")["text"].to_pylist())
    assert "And more after it." not in texts and long.upper() not in texts
    told = json.loads((home / "summary.json").read_text())["steps"]
    steps = {step["step"]: step["tables"]["general"] for step in told if "general" in step["tables"]}
    assert steps["deduplicate"]["dropped"]["same text in test"] == 1
    assert steps["decontaminate"]["dropped"] == {"overlap": 1}


def test_validation_is_held_out_of_each_label_whatever_the_order() -> None:
    rows = [{"text": record["sentence"], "label": record["topic"]} for record in examples(0, 20)]

    def held_out(found: list[dict[str, str]]) -> set[str]:
        part = assign_parts(found, TaskFamily.default(), {"validation": 0.1})
        return {row["text"] for row, each in zip(found, part, strict=True) if each == "validation"}

    assert held_out(rows[::-1]) == held_out(rows) and len(held_out(rows)) == 2 * len(LABELS)


def test_questions_about_one_text_stay_in_one_part() -> None:
    spans = TaskFamily.model_validate("span_extraction")
    nothing: dict[str, list[str]] = {"answer_texts": [], "answer_starts": []}
    texts = documents("email")[:30]
    rows = [{"context": text, "question": question} | nothing for text in texts for question in ("who?", "when?")]
    held = assign_parts(rows, spans, {"test": 0.3, "validation": 0.2})
    assert held[::2] == held[1::2]
    assert {name: held.count(name) for name in set(held)} == {"test": 18, "validation": 12, "train": 30}


def test_a_few_examples_hold_every_label() -> None:
    tagging = TaskFamily.model_validate("tagging")
    tags = [["O", "O"]] * 20 + [["B-x", "O"]] * 3 + [["B-y", "I-y"]]
    rows = [{"tokens": [f"word{number}", "end"], "tags": each} for number, each in enumerate(tags)]
    chosen = draw_labelled(rows, tagging, None, 4)
    assert len(chosen) == 4 and 23 in chosen
    assert tagging.labels([rows[number] for number in chosen]) == tagging.labels(rows)
    assert draw_labelled(rows, tagging, None, 4) == chosen and chosen < draw_labelled(rows, tagging, None, 8)
    with pytest.raises(DataError, match="labelled_examples requests 25 examples, but only 24 are left to train on"):
        draw_labelled(rows, tagging, None, 25)
    with pytest.raises(DataError, match="examples, but 3 are needed to cover all labels"):
        draw_labelled(rows, tagging, None, 1)


def test_without_unlabelled_text_the_task_s_text_is_the_training_text(root: Path) -> None:
    params = root / "params.yaml"
    params.write_text(params.read_text().replace("      labels_per_class: 8\n", ""))
    home = run(root)
    texts = [sorted(pq.read_table(table_path(home, name))["text"].to_pylist()) for name in ("train", "task_text")]
    assert texts[0] == texts[1]


def test_the_pin_moves_with_a_source_and_not_with_a_budget(root: Path) -> None:
    pin("small", root)
    before = json.loads(pin_path("small", root).read_text())
    params = root / "params.yaml"
    params.write_text(params.read_text() + "    recipe: regime\n    budget: {general: {tokens: 1000}}\n")
    pin("small", root)
    assert json.loads(pin_path("small", root).read_text()) == before
    with (root / "texts/general/one.txt").open("a") as file:
        file.write("\n\nOne more document.\n")
    pin("small", root)
    after = json.loads(pin_path("small", root).read_text())
    assert after["steps"]["collect"]["sources"] != before["steps"]["collect"]["sources"]
    assert after["steps"]["clean"] == before["steps"]["clean"]


def _empty_corpus(root: Path) -> None:
    for path in (root / "texts/general").iterdir():
        path.write_text("\n\n  \n")


def _unseen_label(root: Path) -> None:
    with (root / "texts/test.jsonl").open("a") as file:
        file.write(json.dumps({"sentence": "A label nobody taught.", "topic": "gopher"}) + "\n")


def _too_few_examples(root: Path) -> None:
    write_jsonl(root / "texts/train.jsonl", iter(list(examples(0, 1))[:2]))


def _one_class(root: Path) -> None:
    for name in ("train", "test"):
        write_jsonl(root / f"texts/{name}.jsonl", (r for r in examples(0, 30) if r["topic"] == "email"))


def _too_few_of_a_class(root: Path) -> None:
    write_jsonl(root / "texts/train.jsonl", examples(0, 5))


def _missing_file(root: Path) -> None:
    (root / "texts/test.jsonl").unlink()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_empty_corpus, "the corpus 'general' is empty: no text in texts/general"),
        (_unseen_label, "the test split has the label 'gopher' .* which no training example has"),
        (_too_few_examples, "the task has 2 training examples, fewer than its 3 classes"),
        (_one_class, "a task needs two classes"),
        (_too_few_of_a_class, "labels_per_class requests 8 examples, but 'asyncio' has only"),
        (_missing_file, "test.jsonl: there is no such file or folder"),
    ],
)
def test_what_cannot_be_used_is_refused_and_leaves_no_tables(
    root: Path, spoil: Callable[[Path], None], says: str
) -> None:
    spoil(root)
    with pytest.raises(DataError, match=says):
        run(root)
    assert not list(prepared("small", root).glob("*.parquet"))
    assert {path.name for path in prepared("small", root).glob(".*")} <= {".unfinished"}


def test_a_task_of_one_class_is_no_task(root: Path) -> None:
    write_jsonl(root / "texts/train.jsonl", iter([{"sentence": "one and only", "topic": "email"}]))
    write_jsonl(root / "texts/test.jsonl", iter([{"sentence": "another of it", "topic": "email"}]))
    with pytest.raises(CursusError, match="a task needs two classes"):
        run(root)
