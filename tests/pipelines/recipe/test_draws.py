"""A claim about pre-training repeats it: every stage before what is compared, under another seed in every draw."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.claims import COMPARISON, recipe_of_claim
from pipelines.recipe.load import Library
from pipelines.recipe.plan import Plan, plan
from pipelines.recipe.schema import Recipe
from tests.pipelines.recipe.test_claims import GPT, loaded
from tests.steps import RECIPES

LIBRARY = Library(RECIPES)
NAMES = ("general", "domain", "task_text", "train", "validation", "test")
DATA = {name: DataSource(digest=name, path=name) for name in NAMES}


def drawn(name: str, claim: str, draws: int | None, seeds: int = 2) -> Recipe:
    return recipe_of_claim(
        LIBRARY.load(name), claim, seeds, draws=draws, library=lambda owner: LIBRARY.load(owner).stages
    )


def planned(recipe: Recipe) -> Plan:
    return plan(recipe, LIBRARY, DATA)


def test_the_stages_before_are_repeated_and_fine_tuning_seeds_are_crossed() -> None:
    found = planned(drawn("regime", "adaptation", 3))
    seeds = {name: [step.seed for step in found.steps if step.name == name] for name in (s.name for s in found.steps)}
    assert [seeds[f"general{one}"] for one in ("", "_draw2", "_draw3")] == [[0], [1], [2]]
    for name in ("classify", "from_general"):
        assert all(seeds[f"{name}{one}"] == [0, 1] for one in ("", "_draw2", "_draw3"))
    by_print = {step.fingerprint: step for step in found.steps}
    for step in found.steps:
        if step.name.startswith(("classify", "from_general", "task", "domain")):
            parent = by_print[step.parents["start"]]
            assert parent.name.partition("_draw")[2] == step.name.partition("_draw")[2]
    assert len(found.steps[-1].parents) == 2 * 3 * 2 and found.steps[-1].name == COMPARISON
    assert len(by_print) == len(found.steps), "no model is trained twice"


def test_the_first_draw_is_what_a_claim_without_draws_trains() -> None:
    one, three = (planned(drawn("regime", "adaptation", draws)) for draws in (1, 3))
    trained = {step.fingerprint for step in one.steps if step.name != COMPARISON}
    assert trained < {step.fingerprint for step in three.steps}


def test_stages_of_another_recipe_are_repeated_too() -> None:
    found = planned(drawn("adapter", "within_a_point", 2))
    assert {(step.recipe, step.name) for step in found.steps} > {
        ("regime", "general"), ("adapter", "regime.general_draw2"), ("adapter", "plain_draw2")
    }  # fmt: skip
    again = planned(recipe_of_claim(LIBRARY.load("regime"), "adaptation", 1, draws=2))
    shared = {step.fingerprint for step in again.steps if step.name == "task_draw2"}
    assert shared < {step.fingerprint for step in found.steps}, "a draw is the same whichever claim repeats it"
    with pytest.raises(RecipeError, match="the stages of the recipe 'regime' are repeated, which are not known here"):
        recipe_of_claim(LIBRARY.load("adapter"), "within_a_point", 1, draws=2)


def test_random_weights_have_one_draw() -> None:
    recipe = LIBRARY.load("ulmfit")
    sides = [side.stage for side in recipe.claims["pre_trained"].form.sides()]
    stages = drawn("ulmfit", "pre_trained", 2).stages
    assert sides == ["classify", "scratch"]
    assert "classify_draw2" in stages and "scratch_draw2" not in stages
    assert stages[COMPARISON].start == ("classify_draw2", "scratch", "classify")


def test_nothing_to_draw_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="draws: 3: nothing before bigram, trigram is drawn|draws: 3: nothing before"):
        drawn("ngram", "steep_to_three", 3)
    recipe = loaded(tmp_path, "in_order: [task, domain], figure: perplexity, data: docstrings, draws: 2", GPT)
    assert recipe_of_claim(recipe, "known", 1).stages["task_draw2"].start == "domain_draw2"


def test_draws_are_stated_by_the_claim_and_replaced_by_the_user(tmp_path: Path) -> None:
    text = "in_order: [task, domain], figure: perplexity, data: docstrings, draws: 3"
    recipe = loaded(tmp_path / "stated", text, GPT)
    assert "task_draw3" in recipe_of_claim(recipe, "known", 1).stages
    assert "task_draw3" not in recipe_of_claim(recipe, "known", 1, draws=2).stages
    with pytest.raises(RecipeError, match="claims.known.draws: steadier compares the seeds after one draw"):
        loaded(tmp_path / "spread", "steadier: {system: tuned, baseline: frozen_top}, data: docstrings, draws: 2")
