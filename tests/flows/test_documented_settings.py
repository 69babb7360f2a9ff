"""The blocks of YAML on the pages are what Cursus reads: datasets, launchers, memory and engines, recipes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pipelines.corpora.settings.dataset import load_settings
from pipelines.corpora.settings.runtime import load_runtime
from pipelines.recipe.load import Library
from tasks.launchers.settings import load_training
from tests.steps import RECIPES, ROOT

BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)
LEFT_OUT = re.compile(r"^( +)# domain.*$", re.MULTILINE)
"""A comment for what a block leaves out of a dataset."""


def blocks(key: str) -> list[tuple[str, str]]:
    """Page and text of every block that begins with a key."""
    pages = [path for folder in ("docs", "docs/zh") for path in sorted((ROOT / folder).glob("*.md"))]
    return [
        (str(page.relative_to(ROOT)), block)
        for page in pages
        for block in BLOCK.findall(page.read_text(encoding="utf-8"))
        if block.startswith(f"{key}:")
    ]


def settings(folder: Path, block: str, first: str = "own") -> Path:
    (folder / "params.yaml").write_text(f"default_dataset: {first}\n{block}", encoding="utf-8")
    return folder


@pytest.mark.parametrize(("page", "block"), blocks("datasets"))
def test_datasets_are_accepted(page: str, block: str, tmp_path: Path) -> None:
    named = re.findall(r"^  (\w+):", block, re.MULTILINE)
    whole = LEFT_OUT.sub(r"\1domain: domain.txt\n\1task: {train: train.jsonl, test: test.jsonl}", block)
    assert list(load_settings(settings(tmp_path, whole, named[0]))) == named, page


@pytest.mark.parametrize(("page", "block"), blocks("training"))
def test_launchers_are_accepted(page: str, block: str, tmp_path: Path) -> None:
    assert load_training(settings(tmp_path, block)).devices == 4, page


@pytest.mark.parametrize(("page", "block"), blocks("runtime"))
def test_memory_and_engines_are_accepted(page: str, block: str, tmp_path: Path) -> None:
    assert load_runtime(settings(tmp_path, block)) is not None, page


@pytest.mark.parametrize(("page", "block"), blocks("name"))
def test_recipes_are_accepted(page: str, block: str, tmp_path: Path) -> None:
    shutil.copytree(RECIPES, tmp_path / "recipes")
    name = block.partition("\n")[0].removeprefix("name: ")
    (tmp_path / "recipes" / f"{name}.yaml").write_text(block, encoding="utf-8")
    assert Library(tmp_path / "recipes").load(name).name == name, page


def test_each_kind_of_block_is_on_a_page_in_both_languages() -> None:
    for key in ("datasets", "training", "runtime", "name"):
        assert {page.startswith("docs/zh/") for page, _ in blocks(key)} == {True, False}
