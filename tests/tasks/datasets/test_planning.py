"""Requests: what a dataset of params.yaml sets, and what a person asks for instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.datasets.planning import load_recipe, resolve_request
from tests.steps import RECIPES

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


def test_the_variants_of_the_dataset_itself_come_before_its_budget(root: Path) -> None:
    path = root / "params.yaml"
    path.write_text(f"{path.read_text(encoding='utf-8')}    variants: [hour]\n", encoding="utf-8")
    assert budgets(root)[0] == 2_000_000
