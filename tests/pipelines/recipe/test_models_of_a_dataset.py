"""A recipe that looks at another's models looks at those that its dataset asked for."""

from __future__ import annotations

import pytest

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.load import Library, RecipeOptions
from pipelines.recipe.plan import plan
from tests.steps import RECIPES

TABLES = ("general", "domain", "task_text", "train", "validation", "test", "general_heldout")


def models(library: Library, name: str) -> dict[str, str]:
    """Fingerprints of the steps that train, by what they are."""
    digests = {table: DataSource(digest=table, path=table) for table in TABLES}
    return {
        step.label.rpartition("/")[2]: step.fingerprint for step in plan(library.load(name), library, digests).steps
    }


def test_the_models_that_are_attacked_are_those_that_a_run_of_the_dataset_trained() -> None:
    usual = Library(RECIPES)
    asked = Library(RECIPES, {"regime": RecipeOptions(("hour",), {"general": {"tokens": 12_288}})})
    trained, attacked, others = models(asked, "regime"), models(asked, "robustness"), models(usual, "robustness")
    for stage in ("general", "domain", "task", "classify@2", "scratch@0"):
        assert attacked[stage] == trained[stage] != others[stage], stage
    assert asked.load("regime").stages["general"].budget.tokens == 12_288
    assert asked.load("regime").stages["task"].budget.tokens == 8_000_000


def test_what_is_said_outright_goes_before_what_the_dataset_asks() -> None:
    asked = Library(RECIPES, {"regime": RecipeOptions(("hour",), {"general": {"tokens": 12_288}})})
    assert asked.load("regime", (), {}).stages == Library(RECIPES).load("regime").stages


def test_a_stage_that_the_recipe_has_not_got_is_told_wherever_it_is_looked_for() -> None:
    library = Library(RECIPES, {"regime": RecipeOptions(budget={"genral": {"tokens": 1}})})
    with pytest.raises(RecipeError, match="Did you mean 'general'"):
        library.load("robustness")
