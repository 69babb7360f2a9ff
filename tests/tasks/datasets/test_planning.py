"""Requests: what a dataset of params.yaml sets, and what a person asks for instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from tasks.datasets.planning import lattice_request, load_recipe, resolve_request
from tests.steps import RECIPES, ROOT

PARAMS = """\
datasets:
  own:
    general: [{documentation: general}]
    domain: [{documentation: domain}]
    task: {train: a.jsonl, test: b.jsonl}
    recipe: regime
    budget: {general: {tokens: 2000000}, classify: {epochs: 2}}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "params.yaml").write_text(PARAMS, encoding="utf-8")
    (tmp_path / "recipes").symlink_to(RECIPES)
    return tmp_path


def budgets(root: Path, *variants: str) -> tuple[int | None, int | None, float | None]:
    """Tokens of two stages, and epochs of a third."""
    stages = load_recipe(root, resolve_request(root, None, None, variants, smoke=False)).stages
    return stages["general"].budget.tokens, stages["domain"].budget.tokens, stages["classify"].budget.epochs


def test_the_budget_of_a_variant_that_is_asked_for_replaces_that_of_the_dataset(root: Path) -> None:
    general, domain, epochs = budgets(root)
    assert (general, epochs) == (2_000_000, 2)
    longer = budgets(root, "hour")
    assert longer[0] == 20_000_000 and longer[1] is not None and domain is not None and longer[1] > domain
    assert longer[2] == 2, "the variant has no budget of this stage, so the dataset's holds"


def test_a_smoke_run_trains_two_models_of_a_stage_unless_more_are_asked_for(root: Path) -> None:
    request = resolve_request(root, None, None, (), smoke=True)
    assert load_recipe(root, request).stages["classify"].seeds == (0, 1)
    asked_for = lattice_request(root, None, None, (), seeds=3, sizes=(), smoke=True)
    paths = [stage for stage in load_recipe(root, asked_for).stages.values() if stage.head and not stage.suite]
    assert {len(stage.seeds) for stage in paths if stage.draws and stage.budget.epochs} == {3}


def test_the_variants_of_the_dataset_itself_come_before_its_budget(root: Path) -> None:
    path = root / "params.yaml"
    path.write_text(f"{path.read_text(encoding='utf-8')}    variants: [hour]\n", encoding="utf-8")
    assert budgets(root)[0] == 2_000_000


@pytest.mark.parametrize(
    ("recipe", "dataset"),
    [
        ("adapter", "topics"),
        ("crf", "docstrings_tags"),
        ("tod_bert", "docstring_dialogues"),
        ("xlm", "docstring_translations"),
        ("zen", "zh_entities"),
    ],
)
def test_a_recipe_that_the_default_dataset_does_not_fit_gets_one_that_it_was_written_for(
    recipe: str, dataset: str
) -> None:
    request = resolve_request(ROOT, None, recipe, (), smoke=True)
    assert request.dataset == dataset and load_recipe(ROOT, request)
    assert resolve_request(ROOT, "topics", recipe, (), smoke=True).dataset == "topics", "what is asked for is meant"


def test_a_recipe_that_nothing_fits_is_refused_on_the_default_dataset(root: Path) -> None:
    request = resolve_request(root, None, "crf", (), smoke=False)
    assert request.dataset == "own"
    with pytest.raises(RecipeError, match="this dataset is text_classification"):
        load_recipe(root, request)
    assert resolve_request(root, None, "no_such_recipe", (), smoke=False).dataset == "own"
