"""A backbone without a name: that of the start, with embeddings that the stage adds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.parts.backbones import Backbone
from pipelines.recipe.load import Library
from tests.pipelines.recipe.recipe_texts import labelled
from tests.steps import RECIPES, SHIPPED, library_of
from tests.tiny_regime import shorten

ADDED = "  added: {like: answer, annotations: table_cells, backbone: {embeddings: table_cells}}"
AGAIN = "  again: {like: added, annotations: [], backbone: {embeddings: []}}"


def backbones(folder: Path, *stages: str) -> dict[str, Backbone | None]:
    return {
        name: stage.backbone
        for name, stage in library_of(folder, meeting=labelled(*stages)).load("meeting").stages.items()
    }


def test_embeddings_are_added_to_the_network_of_the_start_and_removed_again(tmp_path: Path) -> None:
    found = backbones(tmp_path, ADDED, AGAIN)
    added, start = found["added"], found["general"]
    assert added is not None and start is not None
    assert [one.name for one in added.added_embeddings] == ["table_cells"]
    assert added.model_dump(exclude={"embeddings"}) == start.model_dump(exclude={"embeddings"})
    assert found["again"] == start


def test_without_a_start_and_without_a_name_it_is_refused(tmp_path: Path) -> None:
    alone = "  alone: {kind: pretrain, corpus: general, tokenizer: wordpiece, backbone: {embeddings: table_cells}}"
    with pytest.raises(RecipeError, match=r"meeting\.yaml:\d+: stages\.alone\.backbone: .* the key 'name'"):
        backbones(tmp_path, alone)


def test_another_size_than_that_of_the_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"stages\.small\.backbone: .* or all of it but the embeddings"):
        backbones(tmp_path, "  small: {like: answer, backbone: {positions: 48}}")


def test_every_recipe_follows_a_regime_of_another_size(tmp_path: Path) -> None:
    recipes = shutil.copytree(RECIPES, tmp_path / "recipes")
    shorten(recipes)
    library = Library(recipes)
    for name in sorted(SHIPPED.names()):
        library.load(name)
