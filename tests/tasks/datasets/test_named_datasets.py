"""Named tasks and corpora with real DVC: one output for all of them, a digest for each, and a disk that changes one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipelines.corpora.shards.digests import dvc_digest
from pipelines.recipe.load import Library
from pipelines.task_families.labelled_tables import NAMED
from tasks.datasets.damage import damaged, discard
from tasks.datasets.dvc_process import is_current
from tasks.datasets.planning import load_recipe, make_plan, resolve_request
from tasks.datasets.prepared import Prepared, open_prepared, prepare
from tests.pipelines.corpora.named_dataset import write_named_dataset
from tests.tasks.datasets.test_data_damage import flip

RECIPE = """\
name: pairs
stages:
  score:
    kind: finetune
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone: {name: transformer, dims: {hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2}}
    corpus: pairs
    head: regression
    objective: squared_error
    strategy: full
    budget: {epochs: 1}
  classify: {like: score, corpus: topics, head: sequence_classification, objective: cross_entropy}
  report: {kind: evaluate, start: score, suite: scores}
"""


@pytest.fixture(scope="module")
def root(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a dataset of two named tasks, the first of which is the main one, and two corpora."""
    root = tmp_path_factory.mktemp("named") / "checkout"
    ignored = shutil.ignore_patterns("data", "texts", "params.yaml", "dvc.lock", "cache", "tmp", ".cursus")
    shutil.copytree(checkout, root, ignore=ignored)
    write_named_dataset(root, main=False)
    (root / "recipes").mkdir(exist_ok=True)
    (root / "recipes" / "pairs.yaml").write_text(RECIPE)
    (root / "anchors.yaml").write_text("[]\n")
    prepare("small", root)
    return root


def test_tables_have_digests_and_the_main_task_two_names(root: Path) -> None:
    small = open_prepared("small", root)
    assert small.families == {"topics": "text_classification", "pairs": "pair_regression"}
    assert small.digests == {name: dvc_digest(path) for name, path in small.tables.items()}
    assert {"letters", "pages", "pairs.train", "pairs.validation", "pairs.test", "topics.test"} <= set(small.tables)
    assert small.tables["topics.test"] == small.tables["test"] == small.folder / "test.parquet"
    assert is_current("small", root)


def test_a_recipe_is_planned_over_the_tables_of_its_task(root: Path) -> None:
    small, request = open_prepared("small", root), resolve_request(root, "small", "pairs", (), smoke=False)
    assert list(load_recipe(root, request).stages) == [*Library(root / "recipes").load("pairs").stages]
    score, classify, report = make_plan(root, request, small).steps
    assert {name: source.path for name, source in score.data.items()} == {
        f"pairs.{part}": f"data/prepared/small/{NAMED}/pairs.{part}.parquet" for part in ("train", "validation")
    }
    assert classify.data["topics.train"].path == "data/prepared/small/train.parquet"
    assert {source.dataset for step in (score, classify, report) for source in step.data.values()} == {"small"}
    assert report.family.name == "pair_regression" and list(report.data)[-1] == "pairs.test"


@pytest.mark.parametrize("file", ["pairs.train.parquet", "pages/00000.parquet", "tables.json"])
def test_a_table_that_a_disk_has_changed_is_made_again(root: Path, file: str) -> None:
    before: Prepared = open_prepared("small", root)
    assert damaged(before) == []
    flip(before.folder / NAMED / file)
    assert damaged(before) == [NAMED]
    discard(before, NAMED, root)
    assert prepare("small", root).digests == before.digests
