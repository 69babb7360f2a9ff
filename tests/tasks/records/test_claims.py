"""Claims: narrowed to what they compare, judged by the whole interval, and shown from records alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.recipe.claims import COMPARISON, recipe_of_claim
from pipelines.recipe.kinds import Kind
from pipelines.recipe.load import Library
from tasks.records.claims import PAGE, RECORDS, render_page, verdict
from tests.steps import RECIPES, ROOT, library_of

LIBRARY = Library(RECIPES)
CLAIMS = [(name, claim) for name in LIBRARY.names() for claim in LIBRARY.load(name).claims]


@pytest.mark.parametrize(
    ("low", "high", "at_least", "said"),
    [
        (0.01, 0.05, 0.0, "reproduced"),
        (-0.01, 0.05, 0.0, "cannot tell at this scale"),
        (-0.05, -0.01, 0.0, "not reproduced"),
        (-0.008, 0.02, -0.01, "reproduced"),
        (-0.03, -0.008, -0.01, "cannot tell at this scale"),
        (-0.03, -0.011, -0.01, "not reproduced"),
    ],
)
def test_a_verdict_asks_for_the_whole_interval(low: float, high: float, at_least: float, said: str) -> None:
    assert verdict(low, high, at_least) == said


@pytest.mark.parametrize(("name", "claim"), CLAIMS, ids=[f"{name}-{claim}" for name, claim in CLAIMS])
def test_a_claim_trains_what_it_compares_and_nothing_else(name: str, claim: str) -> None:
    recipe = LIBRARY.load(name)
    stages = recipe_of_claim(recipe, claim, seeds=2).stages
    told = recipe.claims[claim]
    assert stages[told.system].seeds == stages[told.baseline].seeds == (0, 1)
    assert stages[COMPARISON].kind is Kind.EVALUATE and stages[COMPARISON].start == (told.baseline, told.system)
    needed = {COMPARISON, told.baseline, told.system}
    while (
        more := {
            start
            for stage in needed
            if isinstance(start := getattr(stages[stage].start, "untrained", stages[stage].start), str)
            and "/" not in start
        }
        - needed
    ):
        needed |= more
    assert set(stages) == needed


def test_a_claim_that_nobody_makes_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match=r"recipe adapter has no claim 'within_a_pint'. Did you mean 'within_a_point'"
    ):
        recipe_of_claim(LIBRARY.load("adapter"), "within_a_pint")
    text = (RECIPES / "adapter.yaml").read_text().replace("system: adapter", "system: adaptor")
    library = library_of(tmp_path, adapter=text, bert=(RECIPES / "bert.yaml").read_text())
    with pytest.raises(
        RecipeError, match=r"adapter.yaml:\d+: claims.within_a_point.system: there is no stage 'adaptor'"
    ):
        library.load("adapter")


def test_the_page_is_made_of_the_records() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == render_page(ROOT)
    for path in (ROOT / RECORDS).glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        effect = record["effect"]
        assert path.name == f"{record['recipe']}.{record['claim']}.{record['data']['dataset']}.json"
        assert record["verdict"] == verdict(effect["low"], effect["high"], record["at_least"])
        assert record["claim"] in LIBRARY.load(record["recipe"]).claims
