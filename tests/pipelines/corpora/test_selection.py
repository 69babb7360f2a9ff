"""From params.yaml to the text for task adaptation: what is selected, what is told of it, and what it never is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.corpora.duplicates.overlap import text_key
from pipelines.corpora.settings.dataset import load_dataset, load_settings
from pipelines.corpora.shards.folders import manifest, write_table
from pipelines.corpora.shards.tables import TEXTS
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.clean import clean
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.decontaminate import decontaminate
from pipelines.corpora.steps.deduplicate import deduplicate
from pipelines.corpora.steps.pin import pin, pin_path
from pipelines.corpora.steps.select import IN_OWN_TEXT, select
from pipelines.corpora.steps.split import split
from pipelines.corpora.steps.step import begin, prepared, table_path
from pipelines.errors import DataError, RecipeError
from tests.pipelines.corpora.rows_of_tables import table_rows
from tests.pipelines.corpora.small_dataset import write_small_dataset

NEAREST = "{name: nearest, neighbours: 2, vectors: {name: hashed_ngrams, dimensions: 8, buckets: 1024}}"
VARIANTS = f"""\
  near: {{like: small, task_text: {{selection: {NEAREST}}}}}
  blind: {{like: small, task_text: {{selection: {{name: random_texts, matching: {NEAREST}}}}}}}
  only: {{like: small, task_text: {{own: false, selection: {{name: random_texts, texts: 7}}}}}}
"""


def prepare_tables(dataset: str, root: Path) -> None:
    for step in (pin, collect, clean, deduplicate, decontaminate):
        step(dataset, root)


def finish(dataset: str, root: Path) -> dict[str, Any]:
    pin(dataset, root)
    select(dataset, root)
    split(dataset, root)
    found: dict[str, Any] = json.loads((prepared(dataset, root) / "summary.json").read_text())
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("selection")
    write_small_dataset(root)
    with (root / "params.yaml").open("a") as file:
        file.write(VARIANTS)
    for dataset in ("near", "blind", "only"):
        prepare_tables(dataset, root)
    return root


def keys(dataset: str, table: str, root: Path) -> list[bytes]:
    return [text_key(text) for text in pq.read_table(table_path(prepared(dataset, root), table))["text"].to_pylist()]


def test_neighbours_join_the_task_s_own_text_and_nothing_that_is_judged_does(root: Path) -> None:
    summary = finish("near", root)
    told = summary["selection"]
    found = keys("near", "task_text", root)
    domain = set(keys("near", "domain", root))
    selected = [key for key in found if key in domain]
    assert 0 < len(selected) == told["documents"] == told["selected_texts"] < told["figures"]["hits"]
    assert len(found) == len(set(found)) == told["own_texts"] + told["documents"]
    assert not set(found) & {key for part in ("train", "validation", "test") for key in keys("near", part, root)}
    assert told["figures"]["hits"] == 2 * told["own_texts"] and told["in_own_text"] == 0
    assert told["shown"] and len(told["shown"][0]["nearest"]) == 2
    assert summary["task_text_from"] == "unlabelled texts and texts of the domain"
    assert [one["source"] for one in summary["mixtures"]["task_text"]] == ["texts/domain.csv", "train"]


def test_the_blind_control_is_of_equal_size(root: Path) -> None:
    near, blind = (finish(dataset, root)["selection"] for dataset in ("near", "blind"))
    assert blind["documents"] == near["documents"] == blind["figures"]["matching"]["texts"]
    assert set(keys("blind", "task_text", root)) != set(keys("near", "task_text", root))


def test_own_text_may_be_left_out(root: Path) -> None:
    summary = finish("only", root)
    found = keys("only", "task_text", root)
    assert len(found) == 7 and set(found) <= set(keys("only", "domain", root))
    assert summary["task_text_from"] == "texts of the domain"


def test_a_selected_text_that_the_task_has_itself_is_left_out_and_counted(root: Path) -> None:
    pin("near", root)
    before = prepared("near", root) / "decontaminated"
    domain = list(table_rows(before / "domain"))
    own = before / "unlabelled"
    kept = {path.name: path.read_bytes() for path in own.iterdir()}
    try:
        for path in own.iterdir():
            path.unlink()
        own.rmdir()
        write_table(own, TEXTS, [(text.upper(), "mine:1", "mine") for text, *_ in domain[:5]], Tally())
        select("near", root)
        table = manifest(prepared("near", root) / "selected" / "task_text")
        assert table["dropped"] == {IN_OWN_TEXT: 5} and len(table["samples"][IN_OWN_TEXT]) == 5
    finally:
        for path in own.iterdir():
            path.unlink()
        for name, content in kept.items():
            (own / name).write_bytes(content)


def test_without_a_domain_there_are_no_neighbours(root: Path) -> None:
    domain = prepared("near", root) / "decontaminated" / "domain"
    kept = {path.name: path.read_bytes() for path in domain.iterdir()}
    try:
        for path in domain.iterdir():
            path.unlink()
        domain.rmdir()
        write_table(domain, TEXTS, [], Tally())
        with pytest.raises(DataError, match="the domain corpus is empty, so there are no neighbours to find"):
            select("near", root)
    finally:
        for path in domain.iterdir():
            path.unlink()
        for name, content in kept.items():
            (domain / name).write_bytes(content)


def test_a_selection_moves_the_steps_that_it_shapes_and_no_other(root: Path) -> None:
    pin("near", root)
    before = json.loads(pin_path("near", root).read_text())["steps"]
    params = (root / "params.yaml").read_text()
    for said, moved in (
        (("neighbours: 2", "neighbours: 3"), {"select"}),
        (("selection: {name: nearest", "own: false, selection: {name: nearest"), {"select", "split"}),
    ):
        try:
            (root / "params.yaml").write_text(params.replace(*said, 1))
            pin("near", root)
            after = json.loads(pin_path("near", root).read_text())["steps"]
            assert {step for step in after if after[step] != before[step]} == moved
        finally:
            (root / "params.yaml").write_text(params)
    assert {"faiss-cpu", "scikit-learn", "numpy"} <= set(before["select"]["environment"])
    assert set(before["select"]["settings"]["code"]) == {
        "pipelines.corpora.selections.nearest",
        "pipelines.corpora.vectors.hashed_ngrams",
    }


def test_a_dataset_like_another_differs_in_what_it_says(root: Path) -> None:
    settings = load_settings(root)
    assert settings["near"].general == settings["small"].general and settings["near"].task == settings["small"].task
    assert settings["near"].task_text.selection is not None and settings["small"].task_text.selection is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "near: {like: smal}",
            "params.yaml:11: datasets.near.like: no other dataset is called 'smal'. Did you mean 'small'?",
        ),
        ("near: {like: near}", "params.yaml:11: datasets.near.like: no other dataset is called 'near'."),
        ("near: {like: small, lke: 1}", "params.yaml:11: datasets.near: unknown key 'lke'. Did you mean 'like'?"),
        (
            "near: {like: small, task_text: {own: false}}",
            "params.yaml:11: datasets.near.task_text: .*the task text is empty",
        ),
        ("near: {like: small, task_text: {selection: neares}}", "params.yaml:11: .*Did you mean 'nearest'?"),
        ("near: {like: small, task_text: {selection: {name: nearest, k: 2}}}", "selection 'nearest' has no key 'k'"),
        ("near: {like: small, task_text: {selection: random_texts}}", "give either texts .a number. or matching"),
        (
            "near: {like: small}\n  far: {like: near}",
            "params.yaml:12: datasets.far.like: 'near' itself has 'like: small'",
        ),
        ("near: {like: small, mixtures: {domain: {temperature: 1}}}", "params.yaml:11: .*there is nothing to mix"),
    ],
)
def test_a_mistake_in_a_dataset_like_another_has_its_own_line(tmp_path: Path, line: str, says: str) -> None:
    write_small_dataset(tmp_path)
    with (tmp_path / "params.yaml").open("a") as file:
        file.write(f"  {line}\n")
    with pytest.raises(RecipeError, match=says):
        load_settings(tmp_path)


def test_a_mistake_that_is_taken_over_has_the_line_where_it_stands(tmp_path: Path) -> None:
    write_small_dataset(tmp_path)
    params = "datasets:\n  near: {like: small}\n" + (tmp_path / "params.yaml").read_text().replace("datasets:\n", "")
    (tmp_path / "params.yaml").write_text(params.replace("labels_per_class: 8", "labels_per_class: none"))
    with pytest.raises(RecipeError, match="params.yaml:11: datasets.near.task.labels_per_class"):
        load_settings(tmp_path)


def test_a_checkpoint_without_a_tokenizer_is_told_before_anything_runs(tmp_path: Path) -> None:
    write_small_dataset(tmp_path)
    (tmp_path / "model").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "model" / name).write_text("{}")
    vectors = "{name: encoder, checkpoint: model}"
    with (tmp_path / "params.yaml").open("a") as file:
        file.write(f"    task_text:\n      selection: {{name: nearest, vectors: {vectors}}}\n")
    assert load_dataset("small", tmp_path).task_text.selection is not None
    with pytest.raises(RecipeError, match="params.yaml:12: datasets.small.task_text.selection: .*has no tokenizer"):
        pin("small", tmp_path)
    assert not pin_path("small", tmp_path).exists()


@pytest.mark.parametrize("step", [select, split])
def test_a_step_that_was_killed_goes_on(root: Path, step: Any) -> None:
    pin("only", root)
    select("only", root)
    split("only", root)
    home = prepared("only", root)
    before = {name: manifest(home / name) for name in ("general", "domain", "task_text")}
    begun = begin(
        step.__name__, "only", root, before=("decontaminated", "selected") if step is split else "decontaminated"
    )
    (begun.unfinished("own")).mkdir(parents=True)  # as a kill may leave it: a folder without a manifest
    (begun.unfinished("general") / "scattered" / ".unfinished-x").mkdir(parents=True)
    step("only", root)
    assert {name: manifest(home / name) for name in before} == before
    assert not (home / ".unfinished").exists()
