"""Records and pages of claims with several draws of pre-training."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.lineage.store import Store
from pipelines.recipe.load import Library
from tasks.records.claims import PAGE, record_claim
from tasks.records.standings import standing
from tests.tasks.records.test_claims import RIGHT, answers, copy_recipes, measured


def test_a_record_has_all_models_of_all_draws(tmp_path: Path) -> None:
    rows = {one: answers(right) for one, right in RIGHT.items()} | {"adapter_draw3": answers(40)}
    copy_recipes(tmp_path)
    recipe, store = Library(tmp_path / "recipes").load("adapter"), Store(tmp_path / "store")
    record = record_claim(tmp_path, measured(tmp_path, store, recipe, "within_a_point", rows, draws=3))
    assert (record["seeds"], record["pretraining_draws"], record["system"]["pretraining_draws"]) == (2, 3, 3)
    assert len(set(record["system"]["fingerprints"])) == 6
    assert record["system"]["accuracy"]["per_seed"] == pytest.approx([0.7, 0.7, 0.7, 0.7, 0.4, 0.4])
    assert record["system"]["accuracy"]["mean"] == pytest.approx(0.6)
    assert record["baseline"]["accuracy"]["mean"] == pytest.approx(0.4)
    variance = record["effect"]["variance"]
    # of two means of draws 0.7 and one 0.4: a variance of 0.03 between draws, a third of it of their mean
    assert variance["draws"] == pytest.approx(0.01, rel=0.15) and variance["draw_freedom"] == pytest.approx(2)
    assert record["effect"]["low"] < 0 < record["effect"]["difference"], "three draws that differ show nothing"
    assert "| 2 × 3 draws |" in (tmp_path / PAGE).read_text(encoding="utf-8")
    assert standing(tmp_path, record) == "current"
