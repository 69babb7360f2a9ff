"""The page of systems: fresh, made of the list, the recipes and the records, and honest about what is not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.recipe.systems import SYSTEMS, known_systems
from tasks.records.systems import NO_RECIPE, NOT_MEASURED, PAGE, mapped_systems, render_page, write_page
from tests.steps import RECIPES, ROOT, SHIPPED, shipped, without_claims

LIST = """\
E. Transformers:
  - {id: electra, title: ELECTRA, year: 2020, paper: "arXiv:2003.10555", shows: sooner.}
  - {id: bert, title: BERT, year: 2018, paper: Devlin 2018, shows: more.}
G. Adaptation:
  - {id: regime, title: Regime, shows: both help.}
  - {id: t5, title: T5, shows: one format.}
"""
EFFECT = {"difference": -0.0757, "low": -0.1066, "high": -0.044}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of three recipes without records; the third makes no claim."""
    (tmp_path / "recipes").mkdir()
    texts = {name: (RECIPES / f"{name}.yaml").read_text(encoding="utf-8") for name in ("regime", "electra")}
    for name, text in {**texts, "t5": without_claims("t5")}.items():
        (tmp_path / "recipes" / f"{name}.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "recipes" / SYSTEMS).write_text(LIST, encoding="utf-8")
    return tmp_path


def write(root: Path, folder: str, name: str, record: dict[str, Any]) -> None:
    path = root / "docs" / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")


def write_claim(root: Path, dataset: str, verdict: str) -> None:
    """A record of electra's claim on a dataset."""
    side = {"macro_f1": {"mean": 0.5}, "tokens": 1_000_000}
    write(root, "claims", f"electra.electra_against_bert.{dataset}.json", {
        "claim": "electra_against_bert", "recipe": "electra", "says": "Sooner.", "data": {"dataset": dataset},
        "metric": "macro_f1", "at_least": 0.0, "effect": EFFECT, "verdict": verdict, "baseline": side, "system": side,
        "cost": {"seconds": 2706.9, "models": 16},
    })  # fmt: skip


def rows(root: Path, start: str) -> list[str]:
    return [line for line in render_page(root).splitlines() if line.startswith(start)]


def test_the_page_is_fresh() -> None:
    fresh = (ROOT / PAGE).read_text(encoding="utf-8") == render_page(ROOT)
    assert fresh, "run: python -m tasks.records.systems"


def test_every_system_is_on_the_page_once() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    known = known_systems(RECIPES)
    assert all(page.count(f"| **{name}**: ") == 1 for name in known)
    implemented = {name for recipe in SHIPPED.names() for name in shipped(recipe).systems}
    assert f"**{len(implemented)} of {len(known)} systems have a recipe;" in page


def test_a_system_without_a_recipe_says_so(project: Path) -> None:
    (row,) = rows(project, "| **bert**")
    assert f"| {NO_RECIPE} |" in row and "(Devlin 2018)" in row
    assert "**3 of 4 systems have a recipe; a claim was measured for 0 of these.**" in render_page(project)


def test_a_system_without_a_recipe_shows_its_plan_and_one_with_a_recipe_does_not(project: Path) -> None:
    plan = "{axes: [head], new: [parts/heads/a.py], how: as it is, claim: [greater, accuracy, the other]}"
    (project / "docs").mkdir()
    (project / "docs" / "plans.yaml").write_text(f"rows: {{bert: {plan}}}\n", encoding="utf-8")
    (row,) = rows(project, "| **bert**")
    assert f"| {NO_RECIPE} (plan: head: `parts/heads/a.py`) |" in row
    assert [one.plan != "" for one in mapped_systems(project)] == [False, True, False, False]


def test_a_claim_is_shown_before_and_after_its_measurement(project: Path) -> None:
    (row,) = rows(project, "| **electra**")
    assert "| [electra](../recipes/electra.yaml) · classify | docstrings | electra_against_bert: " in row
    assert f"| {NOT_MEASURED} |  |  |" in row
    assert "([arXiv:2003.10555](https://arxiv.org/abs/2003.10555), 2020)" in row
    write_claim(project, "docstrings", "not reproduced")
    (row,) = rows(project, "| **electra**")
    assert "| electra_against_bert: Sooner. | [**not reproduced**](claims.md) " in row
    assert "| −7.6 points of macro-F1 [−10.7, −4.4] | 45 min, 16 models, 2M tokens |" in row
    # a second dataset is a second row, whose first cells are those above
    write_claim(project, "reviews", "reproduced")
    assert len(rows(project, "| **electra**")) == 1 and len(rows(project, "|  |  |  | reviews | electra_against")) == 1
    electra, bert, _, t5 = mapped_systems(project)
    assert electra.verdict == "1 not reproduced, 1 reproduced" and electra.recipes == "electra"
    assert (bert.verdict, bert.recipes) == ("", NO_RECIPE) and t5.verdict == NOT_MEASURED


def test_a_recipe_without_a_claim_says_so(project: Path) -> None:
    (row,) = rows(project, "| **t5**")
    assert f"| no claim yet | {NOT_MEASURED} |" in row


def test_a_stage_that_is_a_system_has_its_effects_in_lattices(project: Path) -> None:
    effects = [{"of": of, **EFFECT, "verdict": "pays"} for of in (["general"], ["domain"], ["domain", "task"])]
    write(project, "lattices", "regime.reviews.json", {
        "recipe": "regime", "data": {"dataset": "reviews"}, "measured": {"metric": "accuracy", "effects": effects},
        "factor_costs": {"domain": {"tokens": 3e6, "minutes": 3.4}}, "cost": {"seconds": 600, "models": 9},
    })  # fmt: skip
    (claim,) = rows(project, "| **regime**")
    assert "not measured" in claim, "its own claim comes first"
    row = next(row for row in rows(project, "|  |  |  | reviews") if "Effect of the stage domain" in row)
    assert "| [**pays**](lattices.md) |" in row
    assert row.endswith("| 10 min, 9 models, 3M tokens |")
    assert "stage general" not in render_page(project), "the recipe does not call it a part of the system"


def test_a_project_without_a_list_gets_no_page(project: Path) -> None:
    write_page(project)
    assert (project / PAGE).read_text(encoding="utf-8") == render_page(project)
    (project / PAGE).unlink()
    (project / "recipes" / SYSTEMS).unlink()
    write_page(project)
    assert not (project / PAGE).exists()
