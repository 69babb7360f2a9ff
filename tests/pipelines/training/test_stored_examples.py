"""Examples that are encoded into files are read in the very batches of examples in memory, whatever happens between."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest

from pipelines.corpora.shards.example_table import ExampleTable, JoinedRows
from pipelines.errors import DataError
from pipelines.models.features import encode_part
from pipelines.parts.annotations.languages_by_script import LanguagesByScript
from pipelines.parts.heads import FeatureTokenizer, Head
from pipelines.task_families import Row, Task, TaskFamily
from pipelines.task_families.columns import RaggedArrays, lengths_of
from pipelines.task_families.excerpt import excerpts
from pipelines.training.batches import stored_examples
from pipelines.training.batches.examples import BUCKET, ExampleBatches
from pipelines.training.batches.stored_examples import encode_stored
from pipelines.training.batches.token_stream import MANIFEST
from pipelines.vocabulary import Field
from tests.contracts.families import build, members
from tests.contracts.trials import tables as trial_tables

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.task_families.encoding import EncodedExamples

HEADS = {name: build(member) for name, member in members("heads").items()}
LABELLED = [
    (name, family)
    for name, head in HEADS.items()
    if isinstance(head, Head)
    for family in sorted(head.reads)
    if head.unfit(TaskFamily.model_validate(family)) is None
]
LENGTH = 96


@pytest.fixture(autouse=True)
def three_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_examples, "AT_ONCE", 3)


def equal(one: EncodedExamples, other: EncodedExamples) -> None:
    """Both make the same batches."""
    assert np.array_equal(one.lengths, other.lengths) and np.array_equal(one.owners, other.owners)
    for size in (1, 4):
        batches = [ExampleBatches(encoded, size=size, steps=2 * len(encoded), seed=3) for encoded in (one, other)]
        for left, right in zip(*batches, strict=True):
            assert left.keys() == right.keys()
            for name, value in left.items():
                assert value.dtype == right[name].dtype and value.equal(right[name]), name


@pytest.mark.parametrize(("name", "family"), LABELLED)
def test_every_head_reads_files_as_it_reads_memory(
    name: str, family: str, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    head, kind = HEADS[name], TaskFamily.model_validate(family)
    assert isinstance(head, Head)
    table = ExampleTable(trial_tables(family)["train"])
    task = Task(kind, tuple(kind.labels(table)))
    features = [FeatureTokenizer(tokenizer, 24)] if head.aligns_words else []
    for answers in (True, False):
        encode = partial(_encode, head, task, tokenizer, features, answers)
        lines: list[str] = []
        stored = encode_stored(table, encode, tmp_path / str(answers), lines.append)
        equal(stored, encode(list(table)))
        assert lines[-1] == f"encoding examples: {len(table)} of {len(table)}" and len(lines) == -(-len(table) // 3)


def _encode(
    head: Head,
    task: Task,
    tokenizer: PreTrainedTokenizerFast,
    features: Sequence[FeatureTokenizer],
    answers: bool,
    rows: Sequence[Row],
) -> EncodedExamples:
    return encode_part(head, rows, task, tokenizer, LENGTH, features, answers=answers)


def test_channels_are_stored_too(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    rows = [{"text": ("level " if number % 2 else "где ") * (1 + number), "label": "x"} for number in range(8)]
    annotation = LanguagesByScript(order=("en", "ru"), scripts={"latin": "en", "cyrillic": "ru"})
    task = Task(TaskFamily.default(), ("x",), (annotation,))
    encode = partial(_encode, Head.model_validate("sequence_classification"), task, tokenizer, (), True)
    whole = encode(rows)
    equal(encode_stored(rows, encode, tmp_path / "stored"), whole)
    assert Field.of_channel("languages") in whole.batch(np.arange(2))


def texts(number: int) -> list[Row]:
    return [{"text": f"number {'and again ' * (one % 7)}{one}", "label": "ab"[one % 2]} for one in range(number)]


@pytest.fixture
def classifier(tokenizer: PreTrainedTokenizerFast) -> Any:
    task = Task(TaskFamily.default(), ("a", "b"))
    return partial(_encode, Head.model_validate("sequence_classification"), task, tokenizer, (), True)


def test_an_epoch_is_what_plain_code_makes_of_the_texts(
    classifier: Any, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    """The batches of before there were files: all texts encoded at once, grouped by length, in this order."""
    rows, size, seed = texts(61), 4, 5
    ids = [tokenizer.encode(str(row["text"]), truncation=True, max_length=LENGTH) for row in rows]
    lengths = np.asarray([len(one) for one in ids])
    random = np.random.default_rng([seed, 4, 0])
    order = random.permutation(len(rows))
    groups = [order[at : at + size * BUCKET] for at in range(0, len(order), size * BUCKET)]
    groups = [group[np.argsort(lengths[group], kind="stable")] for group in groups]
    cut = [group[at : at + size] for group in groups for at in range(0, len(group), size)]
    expected = [cut[index] for index in random.permutation(len(cut))]
    batches = ExampleBatches(encode_stored(rows, classifier, tmp_path / "s"), size=size, steps=len(cut), seed=seed)
    for batch, chosen in zip(batches, expected, strict=True):
        assert batch["labels"].tolist() == [index % 2 for index in chosen]
        for row, index in enumerate(chosen):
            mask = batch["attention_mask"][row].bool()
            assert batch["input_ids"][row][mask].tolist() == ids[index]


def test_mistakes_name_the_row_of_the_table(classifier: Any, tmp_path: Path) -> None:
    rows = texts(20)
    rows[13] = {"text": "thirteen", "label": "c"}
    with pytest.raises(DataError, match=r"example 13: no training example has its label 'c'"):
        encode_stored(rows, classifier, tmp_path / "stored")
    assert not [*tmp_path.iterdir()], "something is left of it"


def test_files_are_found_again_unless_they_are_damaged(classifier: Any, tmp_path: Path) -> None:
    folder, rows = tmp_path / "stored", texts(20)
    encoded: list[int] = []

    def counting(some: Sequence[Row]) -> EncodedExamples:
        encoded.append(len(some))
        result: EncodedExamples = classifier(some)
        return result

    first = encode_stored(rows, counting, folder)
    assert sum(encoded) == 1 + 20
    equal(encode_stored(rows, counting, folder), first)
    assert sum(encoded) == 1 + 20 + 1, "they were encoded again"
    for name in sorted(one.name for one in folder.iterdir()):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        encoded.clear()
        equal(encode_stored(rows, counting, folder), classifier(rows))
        assert sum(encoded) == 1 + 20, f"{name} was damaged, and read"
    encoded.clear()
    equal(encode_stored(rows[:19], counting, folder), classifier(rows[:19]))
    assert sum(encoded) == 1 + 19


def _encode_slowly(folder: Path, classifier: Any) -> None:
    def slow(some: Sequence[Row]) -> EncodedExamples:
        time.sleep(0.05)
        result: EncodedExamples = classifier(some)
        return result

    encode_stored(texts(3000), slow, folder)


def test_a_killed_process_leaves_nothing_that_is_read(classifier: Any, tmp_path: Path) -> None:
    folder = tmp_path / "stored"
    process = multiprocessing.get_context("fork").Process(target=_encode_slowly, args=(folder, classifier))
    process.start()
    assert process.pid is not None
    deadline = time.monotonic() + 60
    while not [*tmp_path.glob(".stored-*/0.values")] and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not folder.exists() and len([*tmp_path.glob(".stored-*")]) == 1
    rows = texts(20)
    equal(encode_stored(rows, classifier, folder), classifier(rows))
    assert [one.name for one in tmp_path.iterdir()] == ["stored"]
    assert (folder / MANIFEST).is_file()


def test_tables_are_read_in_any_order(tmp_path: Path) -> None:
    rows = [{"text": f"text {number}", "label": str(number % 3)} for number in range(50)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=7)
    table = ExampleTable(tmp_path / "a.parquet")
    assert len(table) == 50 and list(table) == rows and table[-1] == rows[-1] and table[5:40:7] == rows[5:40:7]
    assert table.take([49, 3, 3, 20]) == [rows[index] for index in (49, 3, 3, 20)]
    assert table.values("label") == [row["label"] for row in rows]
    with pytest.raises(IndexError):
        table[50]
    joined = JoinedRows(rows[:2], ExampleTable(tmp_path / "a.parquet", ["text"]))
    assert len(joined) == 52 and list(joined)[1:3] == [rows[1], {"text": "text 0"}] == joined[1:3]
    assert joined[51] == {"text": "text 49"}


def test_a_sample_is_the_same_each_time_and_in_order(tmp_path: Path) -> None:
    rows = [{"text": str(number)} for number in range(100)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=9)
    table = ExampleTable(tmp_path / "a.parquet")
    assert table.sample(100, 0) == rows == table.sample(101, 1)
    first, other = table.sample(30, 0), table.sample(30, 1)
    numbers = [int(row["text"]) for row in first]
    assert first == table.sample(30, 0) != other and len(set(numbers)) == 30 and numbers == sorted(numbers)


def test_arrays_of_different_lengths() -> None:
    arrays = [np.arange(size, dtype=np.int64).reshape(-1, 1) for size in (2, 0, 3)]
    ragged = RaggedArrays(np.concatenate(arrays).astype(np.int32), np.asarray([2, 0, 3]))
    assert len(ragged) == 3 and lengths_of(ragged).tolist() == lengths_of(arrays).tolist() == [2, 0, 3]
    assert all(np.array_equal(one, other) and one.dtype == np.int64 for one, other in zip(ragged, arrays, strict=True))
    assert [one.tolist() for one in ragged[1:]] == [one.tolist() for one in arrays[1:]]
    with pytest.raises(IndexError):
        ragged[3]


def test_values_are_stored_as_small_as_they_are(classifier: Any, tmp_path: Path) -> None:
    encode_stored(texts(20), classifier, tmp_path)
    columns = {one["name"]: one for one in json.loads((tmp_path / MANIFEST).read_text())["columns"]}
    assert (columns["ids"]["kind"], columns["types"]["kind"], columns["labels"]["kind"]) == ("<u2", "|u1", "<i8")
    assert not [*tmp_path.glob("*.wide")]


def test_an_excerpt_ends_where_its_texts_are_long() -> None:
    rows = [{"text": "x" * size} for size in (5, 5, 1, 1, 1, 1, 30)]
    found = [(one.first, len(one)) for one in excerpts(rows, 3, 9)]
    assert found == [(0, 2), (2, 3), (5, 2)]
