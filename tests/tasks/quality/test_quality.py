"""Great Expectations really refuses what it should: spoiled tables, its verdict, its pages, the message."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpora.shards.folders import MANIFEST, table_files
from pipelines.corpora.shards.tables import TEXTS, labelled
from pipelines.corpora.shards.writing import write_json
from pipelines.corpora.steps.clean import clean
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.decontaminate import decontaminate
from pipelines.corpora.steps.deduplicate import deduplicate
from pipelines.corpora.steps.pin import pin
from pipelines.corpora.steps.select import select
from pipelines.corpora.steps.split import split
from pipelines.corpora.steps.step import prepared, table_path
from pipelines.errors import QualityError
from pipelines.task_families import TaskFamily
from tasks.quality.acceptance import VARIABLE
from tasks.quality.validate import validate
from tests.pipelines.corpora.small_dataset import write_small_dataset
from tests.pipelines.corpora.test_families import prepare_family

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("quality")
    write_small_dataset(root)
    for step in (pin, collect, clean, deduplicate, decontaminate, select, split):
        step("small", root)
    return root


def read(root: Path, table: str) -> Rows:
    rows: Rows = []
    for file in table_files(table_path(prepared("small", root), table)):
        rows += pq.read_table(file).to_pylist()
    return rows


def write(root: Path, table: str, rows: Rows) -> None:
    path = table_path(prepared("small", root), table)
    if path.is_dir():
        (path / "00000.parquet").unlink()
        whole = [{"collection": "train"} | row for row in rows]
        pq.write_table(pa.Table.from_pylist(whole, schema=TEXTS), path / "00000.parquet")
        digest = sha256((path / "00000.parquet").read_bytes()).hexdigest()
        write_json(path / MANIFEST, {"shards": [{"file": "00000.parquet", "sha256": digest}]})
    else:
        pq.write_table(pa.Table.from_pylist(rows, schema=labelled(TaskFamily.default())), path)


def test_a_clean_dataset_passes_with_a_page_for_every_table(root: Path) -> None:
    validate("small", root)
    verdict = json.loads((prepared("small", root) / "verdict.json").read_text())
    assert verdict["success"] and set(verdict["tables"]) == {
        "general", "domain", "task_text", "train", "validation", "test"
    }  # fmt: skip
    assert all(len(table["expectations"]) >= 9 for table in verdict["tables"].values())
    index = (root / verdict["data_docs"]).read_text()
    for name in verdict["tables"]:
        page = index.partition(f'">{name}</a>: all expectations met')[0].rpartition('href="')[2]
        assert (root / verdict["data_docs"]).parent.joinpath(page).is_file()


def repeat(root: Path) -> None:
    rows = read(root, "train")
    write(root, "train", rows + [rows[0] | {"source": "again:1"}])


def leak(root: Path) -> None:
    write(root, "general", read(root, "general") + [{"text": read(root, "test")[0]["text"], "source": "leak:1"}])


def wrap(root: Path) -> None:
    longest = max((row["text"] for row in read(root, "test")), key=len)
    rows = [{"text": f"Something before. {longest} Something after.", "source": f"wrap:{n}"} for n in range(7)]
    write(root, "domain", read(root, "domain") + [row | {"text": row["text"] + str(n)} for n, row in enumerate(rows)])


def forget(root: Path) -> None:
    write(root, "task_text", [row | {"text": None} if n == 2 else row for n, row in enumerate(read(root, "task_text"))])


def invent(root: Path) -> None:
    write(root, "test", [row | {"label": "gopher"} if n == 2 else row for n, row in enumerate(read(root, "test"))])


def swell(root: Path) -> None:
    write(root, "general", read(root, "general") + [{"text": "spam " * 20_000, "source": "long:1"}])


def unbalance(root: Path) -> None:
    rows = [row for row in read(root, "validation") if row["label"] == "email"]
    write(root, "validation", rows)


@pytest.mark.parametrize(
    ("spoil", "table", "says", "shows"),
    [
        (repeat, "train", "expect_measures_to_be_between on 'surplus_copies' (no text occurs twice", "again:1"),
        (leak, "general", "expect_measures_to_be_null on 'also_in'", "leak:1"),
        (
            wrap,
            "domain",
            "expect_no_leakage on 'overlap' (no text overlaps validation or test: shares 50% or more",
            "wrap:0",
        ),
        (forget, "task_text", "expect_fields_to_not_be_null on 'text'", "train.jsonl:"),
        (invent, "test", "expect_measures_to_be_null on 'unknown_label' (every label occurs in training)", "gopher"),
        (swell, "general", "no text is longer than 50000 characters", "long:1"),
        (unbalance, "validation", "on 'share_of_label'", "train.jsonl:"),
    ],
)
def test_a_spoiled_table_is_refused_by_name_with_its_rows(
    root: Path, tmp_path: Path, spoil: Callable[[Path], None], table: str, says: str, shows: str
) -> None:
    home = prepared("small", root)
    whole = shutil.copytree(home, tmp_path / "whole")
    try:
        spoil(root)
        with pytest.raises(QualityError) as refused:
            validate("small", root)
        verdict = json.loads((home / "verdict.json").read_text())
    finally:
        shutil.rmtree(home)
        shutil.copytree(whole, home)
    message = str(refused.value)
    assert message.startswith(f"small: the table {table!r} failed ") and says in message and shows in message
    assert not verdict["success"] and not verdict["tables"][table]["success"]
    failed = next(entry for entry in verdict["tables"][table]["expectations"] if not entry["success"])
    assert 1 <= len(failed["rows"]) <= 5


def test_a_large_table_is_judged_by_rows_that_stand_for_it_with_the_same_counts(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = prepared("small", root)
    whole = shutil.copytree(home, tmp_path / "whole")
    try:
        (home / "accepted.json").unlink(missing_ok=True)
        leaked = read(root, "test")[0]["text"]
        spoiled = [{"text": leaked, "source": f"leak:{n}"} for n in range(40)]
        write(root, "general", read(root, "general") + spoiled + [{"text": "", "source": "empty:1"}])
        found = []
        for rows_asked in (100_000, 30):
            monkeypatch.setattr("pipelines.corpora.evidence.rows.ROWS_JUDGED_WHOLE", rows_asked)
            monkeypatch.setattr("pipelines.corpora.evidence.rows.SAMPLE", 100_000 if rows_asked > 30 else 10)
            shutil.rmtree(home / ".unfinished", ignore_errors=True)
            with pytest.raises(QualityError):
                validate("small", root)
            asked = json.loads((home / "verdict.json").read_text())["tables"]["general"]["expectations"]
            # what a sample says hangs on what is in it
            counted = [entry for entry in asked if "sampled" not in entry["meaning"]]
            found.append({entry["meaning"]: (entry["success"], entry["unexpected_count"]) for entry in counted})
            rows = sum(
                pq.read_metadata(path).num_rows for path in home.glob(".unfinished/**/evidence-general-*/rows.parquet")
            )
            assert rows < 60 if rows_asked == 30 else rows > 100
        assert found[0] == found[1]
        failed = {meaning: count for meaning, (success, count) in found[0].items() if not success}
        assert sorted(failed.values()) == [1, 40, 40, 40]
    finally:
        shutil.rmtree(home)
        shutil.copytree(whole, home)


def test_a_version_unlike_the_last_accepted_one_is_refused_until_it_is_accepted(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = prepared("small", root)
    whole = shutil.copytree(home, tmp_path / "whole")
    try:
        (home / "accepted.json").unlink(missing_ok=True)
        validate("small", root)
        first = (home / "verdict.json").read_bytes()
        validate("small", root)
        assert (home / "verdict.json").read_bytes() == first  # judged again, a version is no change of itself
        write(root, "general", [row for row in read(root, "general") if len(row["text"]) < 120])
        with pytest.raises(QualityError, match="expect_no_drift on 'length_bin'") as refused:
            validate("small", root)
        assert "if the change is intended: cursus data small --accept" in str(refused.value)
        monkeypatch.setenv(VARIABLE, "another")
        with pytest.raises(QualityError):
            validate("small", root)
        monkeypatch.setenv(VARIABLE, "small")
        validate("small", root)
        monkeypatch.delenv(VARIABLE)
        validate("small", root)  # an accepted version is not compared with the one that it replaced
    finally:
        shutil.rmtree(home)
        shutil.copytree(whole, home)


def test_text_in_another_language_and_unknown_letters_are_refused(root: Path, tmp_path: Path) -> None:
    home, params = prepared("small", root), root / "params.yaml"
    whole, before = shutil.copytree(home, tmp_path / "whole"), params.read_text()
    try:
        params.write_text(before.replace("  small:\n", "  small:\n    language: zh\n"))
        rows = [
            row | {"text": "".join(chr(0x4E00 + 37 * n + k) for k in range(30))}
            for n, row in enumerate(read(root, "test"))
        ]
        write(root, "test", rows)
        with pytest.raises(QualityError, match="expect_language_share") as refused:
            validate("small", root)
        assert "0.0% zh of" in str(refused.value)
        assert "also failed: test: expect_unknown_token_share" in str(refused.value)
    finally:
        params.write_text(before)
        shutil.rmtree(home)
        shutil.copytree(whole, home)


FAMILIES = {
    "pair_regression": ({"label": float("inf")}, "'label' holds inf, expected a finite number"),
    "label_sets": ({"labels": ["odd", "odd"]}, "the column 'labels' holds 'odd' twice"),
    "tagging": ({"tokens": ["a", "b"], "tags": ["O", "I-x"]}, "in IOB2 it begins with B-"),
    "span_extraction": ({"answer_starts": [7]}, "is not at character 7"),
    "multiple_choice": ({"answer": 4}, "expected an index from 0 to 3"),
    "word_senses": ({"answer": 4}, "expected an index from 0 to "),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_judged_by_its_own_rules(tmp_path: Path, name: str) -> None:
    change, says = FAMILIES[name]
    prepare_family(tmp_path, name)
    validate("small", tmp_path)
    home = prepared("small", tmp_path)
    rows = pq.read_table(home / "test.parquet").to_pylist()
    spoiled = [rows[0] | change, *rows[1:]]
    pq.write_table(pa.Table.from_pylist(spoiled, labelled(TaskFamily.model_validate(name))), home / "test.parquet")
    with pytest.raises(QualityError) as refused:
        validate("small", tmp_path)
    message = str(refused.value)
    assert message.startswith(f"small: the table 'test' failed expect_measures_to_be_null on 'problem' (no {name} row")
    assert "test.jsonl:" in message and says in message
