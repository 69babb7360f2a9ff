"""The first look at the sources: mistakes that are found without DVC, and what is not read."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.corpora.steps import first_look
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.first_look import look_at_sources
from pipelines.corpora.steps.pin import pin
from pipelines.errors import DataError
from tests.pipelines.corpora.small_dataset import write_small_dataset


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_small_dataset(tmp_path)
    return tmp_path


def appended(name: str, line: bytes) -> Callable[[Path], None]:
    def append(root: Path) -> None:
        path = root / "texts" / name
        path.write_bytes(path.read_bytes() + line)

    return append


def emptied(root: Path) -> None:
    (root / "texts" / "domain.csv").write_text("body\n", encoding="utf-8")


MISTAKES: dict[str, Callable[[Path], None]] = {
    "an unknown label": appended("test.jsonl", b'{"sentence": "a", "topic": "sports"}\n'),
    "a column that is missing": appended("train.jsonl", b'{"text": "a", "topic": "email"}\n'),
    "broken JSON of text": appended("general/two.jsonl", b'{"text": "a"\n'),
    "bytes of another encoding": appended("general/one.txt", b"\n\n\xb0\xa1\xb0\xa2\n"),
    "a column too many": appended("domain.csv", b'"a","b"\n'),
    "an empty corpus": emptied,
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_the_error_is_that_of_the_step(mistake: Callable[[Path], None], root: Path) -> None:
    look_at_sources("small", root)
    mistake(root)
    assert_the_error_is_that_of_the_step(root)


@pytest.mark.parametrize("copied", ["train", "validation"])
def test_equal_splits_are_refused_at_any_size(copied: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_look, "MOST_BYTES", 0)
    texts, params = root / "texts", root / "params.yaml"
    if copied == "validation":
        params.write_text(
            params.read_text().replace("test: texts/test", "validation: texts/validation.jsonl\n      test: texts/test")
        )
    (texts / f"{copied}.jsonl").write_bytes((texts / "test.jsonl").read_bytes())
    with pytest.raises(DataError, match=rf"small: leak: {copied} \(texts/{copied}.jsonl\) has the same content as"):
        look_at_sources("small", root)


def test_a_test_split_within_the_training_split_leaves_examples(root: Path) -> None:
    texts, params = root / "texts", root / "params.yaml"
    (texts / "training").mkdir()
    for name in ("train", "test"):
        (texts / "training" / f"{name}.jsonl").write_bytes((texts / f"{name}.jsonl").read_bytes())
    params.write_text(params.read_text().replace("texts/train.jsonl", "texts/training"))
    look_at_sources("small", root)


def assert_the_error_is_that_of_the_step(root: Path) -> None:
    with pytest.raises(DataError) as early:
        look_at_sources("small", root)
    pin("small", root)
    with pytest.raises(DataError) as late:
        collect("small", root)
    assert str(early.value) == str(late.value)


def test_a_long_file_is_read_for_a_while_only(root: Path) -> None:
    text = root / "texts" / "general" / "one.txt"
    text.write_bytes(text.read_bytes() * 3_000 + b"\n\n\xb0\xa1\n")
    began = time.thread_time()
    look_at_sources("small", root, seconds=0.1)
    assert time.thread_time() - began < 2, "the mistake at the end is left to the step"


def test_the_first_examples_of_a_large_task_are_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_look, "MOST_BYTES", 1_000)
    look_at_sources("small", root)
    MISTAKES["an unknown label"](root)
    look_at_sources("small", root)  # which labels there are is known at the end
    MISTAKES["a column that is missing"](root)
    assert_the_error_is_that_of_the_step(root)


def test_a_large_file_of_examples_is_read_for_a_while_only(root: Path) -> None:
    train = root / "texts" / "train.jsonl"
    train.write_bytes(train.read_bytes() * 2_000)
    MISTAKES["a column that is missing"](root)
    assert train.stat().st_size > first_look.MOST_BYTES
    began = time.thread_time()
    look_at_sources("small", root, seconds=0.1)
    assert time.thread_time() - began < 2, "the mistake at the end is left to the step"


def test_sources_that_may_be_bad_or_are_remote_are_left_to_the_step(root: Path) -> None:
    MISTAKES["broken JSON of text"](root)
    params = root / "params.yaml"
    skipping = "general: {path: texts/general, bad_records: skip}"
    params.write_text(params.read_text().replace("general: texts/general", skipping))
    look_at_sources("small", root)
    params.write_text(params.read_text().replace("texts/domain.csv", "s3://bucket/domain.csv"))
    look_at_sources("small", root)
