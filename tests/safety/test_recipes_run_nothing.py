"""Recipes and params.yaml are values: whatever is written in them, no code runs and no module is imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipelines.corpora.settings.dataset import load_settings
from pipelines.errors import RecipeError
from pipelines.parts.objectives import Objective
from tests.pipelines.corpora.small_dataset import PARAMS
from tests.pipelines.recipe.test_bad_recipes import GOOD
from tests.steps import library_of

TAGS = (
    "!!python/object/apply:os.mkdir [{marker}]",
    "!!python/object/new:os.mkdir {{args: [{marker}]}}",
    "!!python/name:os.mkdir",
    "!!python/module:antigravity",
    "!mine {{path: {marker}}}",
)


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_is_refused_in_a_recipe_with_its_line(tag: str, tmp_path: Path) -> None:
    marker = tmp_path / "harmed"
    text = GOOD.replace("objective: masked_lm", f"objective: {tag.format(marker=marker)}")
    with pytest.raises(RecipeError, match=r"good.yaml:\d+: the tag .* requests an object"):
        library_of(tmp_path, good=text).load("good")
    assert not marker.exists() and "antigravity" not in sys.modules


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_is_refused_in_params(tag: str, tmp_path: Path) -> None:
    marker = tmp_path / "harmed"
    (tmp_path / "params.yaml").write_text(PARAMS.replace("texts/general", tag.format(marker=marker)))
    with pytest.raises(RecipeError, match=r"params.yaml:\d+: the tag .* requests an object"):
        load_settings(tmp_path)
    assert not marker.exists() and "antigravity" not in sys.modules


def test_aliases_that_grow_without_end_are_refused(tmp_path: Path) -> None:
    levels = "".join(
        f"  {after}: &{after} [{', '.join(['*' + before] * 10)}]\n"
        for before, after in zip("abcde", "bcdef", strict=True)
    )
    laughs = f"settings:\n  a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n{levels}"
    with pytest.raises(RecipeError, match="more than 100,000 values with its aliases expanded"):
        library_of(tmp_path, good=f"{laughs}{GOOD}").load("good")


@pytest.mark.parametrize(
    "name", ["antigravity", "os.mkdir", "pipelines.parts.objectives.masked_lm", "../masked_lm", "__init__"]
)
def test_a_component_is_found_among_ours_and_never_imported_by_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no objective is called"):
        Objective.model_validate({"name": name})
    with pytest.raises(RecipeError, match="no objective is called"):
        library_of(tmp_path, good=GOOD.replace("objective: masked_lm", f"objective: {name!r}")).load("good")
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("name", ["../../escaped", "/etc/passwd", ".hidden", "a b", "{{7*7}}"])
def test_a_stage_is_called_what_may_be_part_of_a_file_s_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"good.yaml:4: stages.* is no valid stage name: use letters"):
        library_of(tmp_path, good=GOOD.replace("  general:", f"  {name!r}:")).load("good")
