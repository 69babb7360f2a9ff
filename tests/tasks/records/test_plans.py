"""Every system without a recipe has a plan, which names what exists, and new files that do not."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from pipelines.components import discover
from pipelines.corpora.settings.task import LabelledTask
from pipelines.errors import RecipeError
from pipelines.judging.claims import ClaimForm
from pipelines.judging.evaluations.robustness import RobustnessEvaluation
from pipelines.parts.backbones.transformer import Transformer
from pipelines.recipe.catalogue import FAMILIES, members_of
from pipelines.recipe.figures import recorded_figures
from pipelines.recipe.schema import Recipe, Stage
from pipelines.recipe.systems import implementations, known_systems
from tasks.records.plans import NEW_FILES, PAGE, PLANS, SystemPlan, read_plans, rendered
from tests.steps import RECIPES, ROOT, SHIPPED, shipped

plans = read_plans(ROOT)
SCHEMAS = (Stage, Recipe, Transformer, LabelledTask, RobustnessEvaluation)
AXES = {key for schema in SCHEMAS for key in schema.model_fields}
JUDGES = ("judging/", "task_families/")
"""Folders whose members may record figures."""
EMPTY = {"axes": ["head"], "how": "as it is", "claim": ["greater", "accuracy", "the other"]}


@cache
def parts() -> set[str]:
    return {name for package in FAMILIES for name in members_of(package)[1]}


def test_a_system_has_a_recipe_or_a_plan_and_never_both() -> None:
    implemented = implementations(map(shipped, SHIPPED.names()))
    known = known_systems(RECIPES)
    assert not set(plans.rows) - set(known), "plans of systems that are not in the list"
    both = sorted(set(plans.rows) & set(implemented))
    assert not both, f"{PLANS}: remove the plans of {both}, which have a recipe; then python -m tasks.records.plans"
    neither = sorted(set(known) - set(implemented) - set(plans.rows))
    assert not neither, f"{PLANS}: {neither} have no recipe: say on which axes, and with which new files, one is made"


def test_the_tables_of_the_decision_are_fresh() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert text == rendered(text, plans), "run: python -m tasks.records.plans"


@pytest.mark.parametrize("row", sorted(plans.rows))
def test_a_plan_names_axes_and_parts_that_exist_and_files_that_do_not(row: str) -> None:
    plan = plans.rows[row]
    assert plan.axes and set(plan.axes) <= AXES, set(plan.axes) - AXES
    assert set(plan.uses) <= parts() | set(known_systems(RECIPES)), set(plan.uses) - parts()
    assert len(set(plan.new)) == len(plan.new)
    for file in plan.new:
        path = ROOT / NEW_FILES / file
        assert re.fullmatch(r"[a-z_]+/([a-z_]+/)?[a-z][a-z0-9_]*\.py", file)
        assert (path.parent / "__init__.py").is_file(), f"{file}: there is no such folder: a plan adds no rooms"
        assert not path.exists(), f"{file} exists: name its part under uses"


@pytest.mark.parametrize("row", sorted(plans.rows))
def test_a_plan_compares_a_figure_that_is_recorded_or_brings_its_judge(row: str) -> None:
    form, figure, against = plans.rows[row].claim
    discover(ClaimForm.__module__)
    assert form in ClaimForm.members and against
    brings = any(file.startswith(JUDGES) for file in plans.rows[row].new)
    assert figure in recorded_figures(None) or brings, f"{figure} is recorded by no judge"


def test_a_contract_is_in_files_that_exist_and_some_row_waits_for_it() -> None:
    for name, contract in plans.contracts.items():
        assert all((ROOT / file).is_file() for file in contract.where), name
        assert contract.widened or plans.waiting_for(name), f"{name}: no row waits for it; remove it"


def test_a_contract_that_is_unknown_and_a_missing_table_are_errors(tmp_path: Path) -> None:
    (tmp_path / PLANS).parent.mkdir()
    (tmp_path / PLANS).write_text("rows: {glove: {axes: [estimate], how: a, claim: [a, b, c], waits_for: [wrods]}}")
    with pytest.raises(RecipeError, match=r"plans.yaml: .*'wrods' is not among the contracts"):
        read_plans(tmp_path)
    with pytest.raises(RecipeError, match="one table between <!-- rows: begin -->"):
        rendered("", plans)
    assert not read_plans(tmp_path / "elsewhere").rows


def test_a_plan_says_what_it_waits_for_until_that_is_widened(tmp_path: Path) -> None:
    (tmp_path / PLANS).parent.mkdir()
    row = "rows: {r: {axes: [head], new: [a.py], how: h, claim: [f, g, h], waits_for: [c]}}"
    contract = "contracts: {c: {where: [f.py], now: closed, widening: open, widened: %s}}"
    (tmp_path / PLANS).write_text(f"{row}\n{contract % 'false'}\n")
    waiting = read_plans(tmp_path)
    assert waiting.line("r") == "head: `a.py`; first widen *c*" and waiting.waiting_for("c") == ["r"]
    free = waiting.model_copy(update={"contracts": {"c": waiting.contracts["c"].model_copy(update={"widened": True})}})
    assert free.line("r") == "head: `a.py`"
    alone = SystemPlan.model_validate(EMPTY)
    assert free.model_copy(update={"rows": {"r": alone}}).line("r") == "head: its recipe alone"
