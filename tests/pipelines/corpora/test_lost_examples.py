"""Training that equals test, examples that repeat, labels that contradict each other, headers among the examples."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from pipelines.corpora.steps.clean import clean
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.decontaminate import decontaminate
from pipelines.corpora.steps.deduplicate import deduplicate
from pipelines.corpora.steps.pin import pin
from pipelines.errors import DataError
from tests.small_corpus import documents

PARAMS = """\
datasets:
  small:
    general: general.txt
    domain: domain.txt
    task: {{train: train.{0}, validation: validation.{0}, test: test.{0}}}
"""
TEXTS = documents("email")
STEPS = (pin, collect, clean, deduplicate, decontaminate)
Rows = Iterable[tuple[str, str]]


def prepare(root: Path, train: Rows, test: Rows, validation: Rows | None = None) -> None:
    """Write a dataset with these examples, and prepare it."""
    (root / "params.yaml").write_text(PARAMS.format("jsonl"))
    (root / "general.txt").write_text("\n\n".join(text.replace("\n\n", "\n") for text in documents("http")))
    (root / "domain.txt").write_text("\n\n".join(text.replace("\n\n", "\n") for text in documents("urllib")))
    parts = {"train": train, "test": test, "validation": validation or rows(30, 36)}
    for part, some in parts.items():
        lines = (json.dumps({"text": text, "label": label}) + "\n" for text, label in some)
        (root / f"{part}.jsonl").write_text("".join(lines))
    for step in STEPS:
        step("small", root)


def rows(begin: int, end: int) -> list[tuple[str, str]]:
    return [(TEXTS[number], "ab"[number % 2]) for number in range(begin, end)]


def refusal(root: Path, train: Rows, test: Rows, validation: Rows | None = None) -> str:
    with pytest.raises(DataError) as told:
        prepare(root, train, test, validation)
    assert "\n" not in str(told.value) and "small" in str(told.value)
    return str(told.value)


def test_training_that_equals_test_is_a_leak(tmp_path: Path) -> None:
    message = refusal(tmp_path, rows(0, 20), rows(0, 20))
    assert "leak: 20 of 20 training examples overlap a validation or test example" in message
    assert " 0 training examples" not in message


def test_training_that_contains_every_test_text_is_a_leak(tmp_path: Path) -> None:
    longer = [(f"{text}\nAnd a word more.", label) for text, label in rows(0, 20) if len(text.split()) > 20]
    message = refusal(tmp_path, longer, rows(0, 20))
    assert f"leak: {len(longer)} of {len(longer)} training examples overlap" in message


def test_examples_that_repeat_are_duplicates(tmp_path: Path) -> None:
    message = refusal(tmp_path, rows(0, 20), rows(10, 20) * 3, [*rows(10, 12)] * 5)
    assert "leak: 10 of 10 validation examples" in message and "duplicates: 20 of 30 test examples repeat" in message


def test_labels_that_contradict_each_other_are_a_contradiction(tmp_path: Path) -> None:
    both = [(text, label) for text, _ in rows(0, 20) for label in "ab"]
    message = refusal(tmp_path, both, rows(20, 30))
    assert "contradiction: 40 of 40 training examples have the text of another, but another label" in message


@pytest.mark.parametrize("part", ["train", "validation", "test"])
@pytest.mark.parametrize("header", ["text\tlabel", "Sentence\tlabel", "body\ttopic"])
def test_a_header_among_the_examples_is_recognised_in_every_part(part: str, header: str, tmp_path: Path) -> None:
    for name, (begin, end) in {"train": (0, 20), "validation": (20, 26), "test": (26, 40)}.items():
        lines = [f"{' '.join(text.split())}\t{label}\n" for text, label in rows(begin, end)]
        (tmp_path / f"{name}.tsv").write_text((f"{header}\n" if name == part else "") + "".join(lines))
    (tmp_path / "params.yaml").write_text(PARAMS.format("tsv"))
    for name in ("general", "domain"):
        (tmp_path / f"{name}.txt").write_text("A text of some length.\n")
    pin("small", tmp_path)
    with pytest.raises(DataError, match=rf"{part}\.tsv:1: the row holds names of columns \('{header.split()[0]}', "):
        collect("small", tmp_path)
    params = tmp_path / "params.yaml"
    params.write_text(params.read_text().replace("test.tsv", "test.tsv, bad_rows: drop"))
    pin("small", tmp_path)
    collect("small", tmp_path)
    (counts,) = json.loads((tmp_path / "data/prepared/small/collected/counts.json").read_text())
    assert counts["tables"]["task"]["dropped"] == {f"{part}: header": 1}


def test_a_first_example_of_a_word_is_no_header(tmp_path: Path) -> None:
    from tests.pipelines.corpora.test_examples import read as examples_of

    (tmp_path / "a.tsv").write_text("Title\tpositive\ntext\tnegative\n")
    assert [row["label"] for row in examples_of(tmp_path / "a.tsv", "text_classification")] == ["positive", "negative"]
