"""A record is stale as soon as the settings or the code of a stage that it measured are others."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipelines.lineage.store import Store
from tasks.datasets.libraries import recipes_for
from tasks.records.claims import PAGE, record_claim, render_page
from tasks.records.standings import differing_stages, standing
from tests.steps import ROOT
from tests.tasks.records.test_claims import RIGHT, answers, copy_recipes, measured


def test_a_record_is_current_until_a_stage_changes(tmp_path: Path) -> None:
    copy_recipes(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    recipe = recipes_for(tmp_path, "docstrings").load("adapter")
    rows = {one: answers(right) for one, right in RIGHT.items()}
    record = record_claim(tmp_path, measured(tmp_path, Store(tmp_path / "store"), recipe, "within_a_point", rows))
    assert standing(tmp_path, record) == "current" and "| current |" in (tmp_path / PAGE).read_text(encoding="utf-8")
    path = tmp_path / "recipes" / "adapter.yaml"
    written = path.read_text(encoding="utf-8")
    path.write_text(written + "# a comment changes nothing\n", encoding="utf-8")
    assert standing(tmp_path, record) == "current"
    path.write_text(written.replace("adapter: {like: plain,", "adapter: {like: plain, dropout: 0.3,"), encoding="utf-8")
    assert (standing(tmp_path, record), differing_stages(tmp_path, record)) == ("stale", ["adapter"])
    assert "| **stale** |" in render_page(tmp_path)
    path.write_text(written.replace("within_a_point:", "within_two_points:"), encoding="utf-8")
    assert standing(tmp_path, record) == "gone"
    del record["definitions"]
    assert standing(tmp_path, record) == "unknown"
