"""README's figures of the default run are those of its record, which is of the recipe as it is."""

from __future__ import annotations

import json
import re

import pytest

from pipelines.corpora.settings.dataset import read_params
from pipelines.errors import DataError
from pipelines.recipe.load import Library
from tasks.records.default_run import BEGIN, END, PAGES, RECORD, block, record_of, settings_digest, with_block
from tests.steps import ROOT

KNOWN = json.loads((ROOT / RECORD).read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", PAGES)
def test_readme_says_what_the_record_holds(language: str) -> None:
    page = (ROOT / PAGES[language]).read_text(encoding="utf-8")
    assert page == with_block(page, KNOWN, language), "run `python -m tasks.records.default_run`"
    assert page.count(BEGIN) == page.count(END) == 1


def test_the_blocks_have_the_same_figures_in_words_of_their_own() -> None:
    english, chinese = (block(KNOWN, language).splitlines() for language in PAGES)
    figures = [[re.findall(r"\d+\.\d", line) for line in lines if line.startswith("|")] for lines in (english, chinese)]
    assert figures[0] == figures[1] and "准确率" in chinese[4] and "accuracy" in english[4]
    assert not re.search("pays|accuracy|cannot tell|baseline|class", "\n".join(chinese[1:-1]).replace("`classify`", ""))


def test_the_record_is_of_the_recipe_that_ships() -> None:
    again = "measure it again: `make run` in a fresh clone, then `python -m tasks.records.default_run EXECUTION`"
    assert KNOWN["settings"] == settings_digest(Library(ROOT / "recipes").load(KNOWN["recipe"])), again
    assert KNOWN["dataset"] == read_params(ROOT)["default_dataset"], again
    assert "+" not in KNOWN["commit"], "measured from a tree with changes"


def test_the_default_run_is_worth_its_time() -> None:
    """After all stages it is better than without any, and than TF-IDF, and no stage hurts."""
    metric = KNOWN["metric"]
    (tfidf,) = (one[metric] for one in KNOWN["baselines"] if one["name"] == "tfidf")
    last = next(one[metric] for one in KNOWN["stages"] if one["stage"] == KNOWN["ladder"][-1]["to"])
    assert last["low"] > tfidf["high"] and KNOWN["ladder"][-1]["verdict"] == "pays"
    assert all(step["verdict"] != "does not pay" for step in KNOWN["ladder"])
    assert KNOWN["cost"]["seconds"] <= 600


def test_a_score_that_changes_is_seen() -> None:
    other = json.loads(json.dumps(KNOWN))
    other["stages"][0][KNOWN["metric"]]["mean"] += 0.01
    assert block(other) != block(KNOWN)


def test_an_unknown_execution_is_one_sentence() -> None:
    with pytest.raises(DataError, match="there is no such execution"):
        record_of(ROOT, "20000101-000000-0000")
