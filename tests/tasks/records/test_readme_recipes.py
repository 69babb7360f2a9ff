"""The list of recipes in README is fresh in both languages, and holds every recipe."""

from __future__ import annotations

import re

import pytest

from pipelines.messages.translation import translations
from pipelines.recipe.load import Library
from tasks.records.readme_recipes import PAGES, block, with_block
from tests.steps import RECIPES, ROOT


@pytest.mark.parametrize("language", PAGES)
def test_the_list_is_fresh_and_complete(language: str) -> None:
    page = (ROOT / PAGES[language]).read_text(encoding="utf-8")
    written = block(RECIPES, language)
    fresh = page == with_block(page, written)
    assert fresh and written in page, "run: python -m tasks.records.systems"
    names = re.findall(r"\(recipes/([a-z0-9_]+)\.yaml\)", written)
    assert set(names) == set(Library(RECIPES).names())


def test_every_title_is_translated() -> None:
    titles = [line.split("|")[1].strip() for line in block(RECIPES).splitlines() if line.startswith("| ")]
    assert set(titles) - {"kind"} <= set(translations("zh"))
