"""LayoutLM's recipe on datasets that lack what it reads: refused when it is loaded, with file, line and what would
fit."""

from __future__ import annotations

import pytest

from pipelines.corpora.settings.dataset import load_settings
from pipelines.corpora.settings.sources import PAGE_COLUMNS
from pipelines.errors import RecipeError
from pipelines.recipe.load import Library
from pipelines.recipe.problems import Setting
from tasks.datasets.libraries import setting_of_dataset
from tests.steps import RECIPES, ROOT

PAGES = {"pages": PAGE_COLUMNS}


def test_the_shipped_dataset_has_all_that_it_reads() -> None:
    setting = setting_of_dataset(ROOT, "docstring_pages")
    assert setting.corpora == PAGES and load_settings(ROOT)["docstring_pages"].recipe == "layoutlm"
    recipe = Library(RECIPES).load("layoutlm", setting=setting)
    pages, words = (recipe.stages[name] for name in ("pages", "words"))
    assert pages.budget == words.budget, "the same steps"
    assert pages.backbone is not None and [one.name for one in pages.backbone.added_embeddings] == ["boxes"]
    assert words.backbone is not None and not words.annotations and not words.backbone.added_embeddings
    assert [one.name for one in recipe.stages["tagged"].annotations] == ["boxes"], "of what it starts from"
    for name in ("tagged_words", "scratch_words"):
        stage = recipe.stages[name]
        assert not stage.annotations and stage.backbone == words.backbone


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (Setting("layout_tagging", "en", {}, {}), r"layoutlm.yaml:\d+: .*the dataset has no corpus .* 'pages'"),
        (
            Setting("layout_tagging", "en", {"pages": {"tokens": "list<string>"}}, {}),
            r"layoutlm.yaml:\d+: .*the corpus 'pages' has no column 'boxes'",
        ),
        (
            Setting("tagging", "en", PAGES, {}),
            r"layoutlm.yaml:\d+: .*an example of tagging has no boxes, only tags, tokens",
        ),
    ],
)
def test_a_dataset_without_boxes_is_refused(setting: Setting, expected: str) -> None:
    with pytest.raises(RecipeError, match=expected):
        Library(RECIPES).load("layoutlm", setting=setting)
