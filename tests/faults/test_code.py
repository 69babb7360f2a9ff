"""Cases belong to one campaign while what a disturbed run executes stays the same."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.faults.code import RECIPES, code, executed, steps_of


def test_what_holds_results_and_serves_is_part_of_it_and_pages_of_records_are_not() -> None:
    modules = executed()
    assert modules >= {
        "flows.regime",
        "pipelines.lineage.store",
        "pipelines.training.checkpoints",
        "tasks.datasets.dvc_process",
        "tasks.servers.temporary_server",
        "tasks.tracking.outbox",
        "tasks.tracking.registry",
    }
    assert not modules & {"tasks.records.claims_page", "tasks.compression.answer", "flows.lattice"}
    assert not any(one.startswith(("pipelines.recipe", "pipelines.reports")) for one in modules)


def test_a_changed_recipe_of_the_campaign_changes_it(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(RECIPES, tmp_path / "recipes"))
    assert steps_of(folder) == steps_of()
    path = folder / "counted.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("order: 3", "order: 4"), encoding="utf-8")
    changed = [ours != theirs for ours, theirs in zip(steps_of(folder), steps_of(), strict=True)]
    assert any(changed) and not all(changed)
    assert len(code()) == 64
