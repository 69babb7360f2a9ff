"""Tables of a dataset that is not prepared: all of them, with sizes that follow from its settings."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pipelines.corpora.settings.tables import named_tables, table_aliases
from pipelines.corpora.steps.step import TABLES
from pipelines.errors import DataError
from tasks.datasets.libraries import settings_of
from tasks.datasets.planning import make_plan, resolve_request
from tasks.estimates.expected_data import expected_data, preparation_seconds
from tasks.estimates.work import tables_of
from tests.steps import ROOT

OWN = """
datasets:
  mine:
    general: texts/general.txt
    domain: s3://bucket/domain.jsonl
    task: {train: train.jsonl, test: test.jsonl, labels_per_class: 4}
    recipe: regime
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "params.yaml").write_text(OWN, encoding="utf-8")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "general.txt").write_text("word " * 20_000, encoding="utf-8")
    for part, number in (("train", 500), ("test", 100)):
        lines = [json.dumps({"text": "word " * 30, "label": "one"}) + "\n"] * number
        (tmp_path / f"{part}.jsonl").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def test_sizes_follow_from_files_and_limits(root: Path) -> None:
    tables = tables_of(expected_data("mine", root))
    assert tables["general"].characters == 100_000
    assert 50 < tables["test"].documents < 150 and tables["train"].documents <= 4 * tables["train"].answers
    assert tables["task_text"].documents > 300, "the texts of unlabelled examples are kept"
    assert tables["domain"].characters > 0, "a server is not asked"


def test_larger_data_takes_longer(root: Path) -> None:
    before = preparation_seconds(expected_data("mine", root))
    os.truncate(root / "texts" / "general.txt", 10**8)
    assert preparation_seconds(expected_data("mine", root)) > 1.5 * before


def test_a_missing_source_is_refused(root: Path) -> None:
    (root / "test.jsonl").unlink()
    with pytest.raises(DataError, match=r"test\.jsonl: there is no such file or folder"):
        expected_data("mine", root)


FITTING = [name for name, one in settings_of(ROOT).items() if name == "topics" or one.recipe != "regime"]
"""Datasets whose own recipe fits their task: others are for claims."""


@pytest.mark.parametrize("dataset", [name for name in FITTING if not name.startswith("zh")])
def test_the_recipe_of_every_dataset_is_planned(dataset: str) -> None:
    settings, expected = settings_of(ROOT)[dataset], expected_data(dataset, ROOT)
    assert {*TABLES, *named_tables(settings), *table_aliases(settings)} <= expected.tables.keys()
    plan = make_plan(ROOT, resolve_request(ROOT, dataset, None, (), False), expected)
    sizes = tables_of(expected)
    read = {source.digest for step in plan.steps for source in step.data.values()}
    assert read <= sizes.keys() and all(sizes[one].documents > 0 for one in read)
