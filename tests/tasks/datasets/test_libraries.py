"""Recipes that are read once: until one of their files, or the settings, change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from tasks.datasets.libraries import recipes_for, recipes_of, settings_of
from tests.steps import RECIPES, ROOT


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(RECIPES, tmp_path / "recipes")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    return tmp_path


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_recipe_is_read_once_until_it_changes(root: Path) -> None:
    before = recipes_of(root).load("adapter")
    assert recipes_of(root).load("adapter") is before
    edited(root / "recipes" / "adapter.yaml", "adapter: {like: plain,", "adapter: {like: plain, dropout: 0.3,")
    after = recipes_of(root).load("adapter")
    assert before.stages["adapter"].dropout != 0.3 and after.stages["adapter"].dropout == 0.3


def test_a_recipe_on_a_dataset_follows_its_settings(root: Path) -> None:
    before = recipes_for(root, "topics").options["regime"].variants
    edited(root / "params.yaml", "    variants: []\n", "    variants: [hour]\n")
    assert (before, recipes_for(root, "topics").options["regime"].variants) == ((), ("hour",))
    assert settings_of(root)["topics"].variants == ["hour"]


def test_a_recipe_in_another_file_is_read_each_time(root: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.yml"
    shutil.copy(root / "recipes" / "adapter.yaml", own)
    library = recipes_of(root)
    assert library.load(str(own)).name
    own.unlink()
    with pytest.raises(RecipeError, match="there is no recipe"):
        library.load(str(own))
