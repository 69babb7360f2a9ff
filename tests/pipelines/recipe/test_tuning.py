"""Both sides of a claim are tuned over the same grid, and what a grid cannot be is refused with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.parts.objectives.cell_selection import CellSelection
from pipelines.recipe.claims import recipe_of_claim
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from pipelines.recipe.tuning import at_point, grid_recipe, points, with_choices
from tests.pipelines.recipe.test_claims import GPT, LINE, loaded
from tests.steps import RECIPES

LIBRARY = Library(RECIPES)
NAMES = ("general", "domain", "task_text", "train", "validation", "test")
DATA = {name: DataSource(digest=name, path=name) for name in NAMES}
PAIR = "system: tuned, baseline: frozen_top, metric: accuracy, data: docstrings"


def test_a_grid_is_every_combination() -> None:
    assert points({"lr": [1, 2], "budget.epochs": [3, 4]}) == [
        {"optimizer.lr": 1, "budget.epochs": 3}, {"optimizer.lr": 1, "budget.epochs": 4},
        {"optimizer.lr": 2, "budget.epochs": 3}, {"optimizer.lr": 2, "budget.epochs": 4},
    ]  # fmt: skip


def test_every_side_is_trained_at_every_point_once(tmp_path: Path) -> None:
    recipe = loaded(tmp_path, f"{PAIR}, tune: {{lr: [1.0e-4, 1.0e-3, 5.0e-3]}}")
    grid = grid_recipe(recipe, "known", ("frozen_top", "tuned"))
    rates = {name: stage.optimizer.lr for name, stage in grid.stages.items() if "_point" in name}
    assert rates == {
        f"{stage}_point{number}": rate
        for stage in ("frozen_top", "tuned")
        for number, rate in ((1, 1e-4), (2, 1e-3), (3, 5e-3))
    }
    assert all(stage.seeds == (0,) for stage in grid.stages.values())
    assert not any(stage.kind.judges for stage in grid.stages.values()), "the test table is not looked at"


def test_the_chosen_model_is_one_of_the_measurement(tmp_path: Path) -> None:
    recipe = loaded(tmp_path, f"{PAIR}, tune: {{lr: [1.0e-4, 1.0e-3]}}")
    choices = {"tuned": {"optimizer.lr": 1e-4}, "frozen_top": {"optimizer.lr": 1e-3}}
    searched = plan(grid_recipe(recipe, "known", ("frozen_top", "tuned")), LIBRARY, DATA)
    found = plan(recipe_of_claim(with_choices(recipe, choices), "known", 3), LIBRARY, DATA)
    known = {step.fingerprint for step in searched.steps}
    shared = {(step.name, step.seed) for step in found.steps if step.fingerprint in known}
    assert {("tuned", 0), ("frozen_top", 0)} <= shared and ("tuned", 1) not in shared
    assert {step.stage.optimizer.lr for step in found.steps if step.name == "tuned"} == {1e-4}


def test_an_option_of_a_part_is_tuned() -> None:
    stage = LIBRARY.load("tapas").stages["cells"]
    (changed,) = at_point(stage, {"objective.preference": 0.9}).objective
    assert isinstance(changed, CellSelection) and changed.preference == 0.9
    with pytest.raises(RecipeError, match=r"objective\.preference: .* less than or equal to 1, got 1\.5"):
        at_point(stage, {"objective.preference": 1.5})
    with pytest.raises(RecipeError, match=r"there is no setting 'objective\.preferences'.*'preference'"):
        at_point(stage, {"objective.preferences": 0.9})


def test_nothing_else_of_a_stage_changes() -> None:
    stage = LIBRARY.load("adapter").stages["plain"]
    changed = at_point(stage, {"optimizer.lr": 0.5, "budget.epochs": 2, "dropout": 0.25})
    assert (changed.optimizer.lr, changed.budget.epochs, changed.dropout) == (0.5, 2, 0.25)
    back = changed.model_copy(update={"optimizer": stage.optimizer, "budget": stage.budget, "dropout": stage.dropout})
    assert back == stage and type(changed.optimizer) is type(stage.optimizer)


REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "an unknown setting": (
        f"{PAIR}, tune: {{optimizer.lrr: [1.0e-4]}}",
        "known.tune: stage 'tuned': there is no setting 'optimizer.lrr'. Did you mean 'lr'?", {},
    ),
    "a value that no stage can have": (
        f"{PAIR}, tune: {{dropout: [0.1, 7]}}",
        "known.tune: stage 'tuned': dropout: Input should be less than 1, got 7", {},
    ),
    "the same value twice": (
        f"{PAIR}, tune: {{lr: [0.1, 0.1]}}", "known.tune: lr: give values that differ, one or more", {},
    ),
    "no value": (f"{PAIR}, tune: {{lr: []}}", "known.tune: lr: give values that differ, one or more", {}),
    "plain text": (
        "in_order: [task, domain], figure: perplexity, data: docstrings, tune: {lr: [0.1]}",
        "known.tune: stage 'task' is not trained on labelled examples", {"stages": GPT},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_grid_that_cannot_be_searched_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    claim, message, options = REFUSED[name]
    with pytest.raises(RecipeError) as refused:
        loaded(tmp_path, claim, **options)
    line = LINE if not options else len(options["stages"].splitlines()) + 2
    text = str(refused.value)
    assert text.startswith(f"{tmp_path / 'stating.yaml'}:{line}: claims.{message}"), text
