"""Records of lattices say when, at which commit and of which code they were measured, and the page shows it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pipelines.judging.evaluations.stage import EVALUATION
from pipelines.lineage.provenance import DataSource, Environment, Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.lattice import LATTICE
from pipelines.recipe.plan import plan
from tasks.datasets.libraries import recipes_for
from tasks.datasets.planning import lattice_request, load_recipe
from tasks.records.lattices import PAGE, RECORDS, record_lattice, render_page
from tasks.records.measurements import named_records
from tasks.records.standings import lattice_standing
from tests.steps import RECIPES, ROOT
from tests.tasks.records.test_claims import write_tables

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def recorded(root: Path, commit: str) -> dict[str, Any]:
    """The record of a lattice of the default run, whose judge found what it once found on chemprot."""
    shutil.copytree(RECIPES, root / "recipes", dirs_exist_ok=True)
    shutil.copy(ROOT / "params.yaml", root)
    old = named_records(ROOT / RECORDS)["regime.chemprot"]
    request = lattice_request(root, "docstrings", "regime", (), 5, (), smoke=False)
    prepared = write_tables(root, "docstrings")
    data = {one: DataSource(digest=digest, path=one) for one, digest in prepared.digests.items()}
    planned, store = plan(load_recipe(root, request), recipes_for(root, "docstrings"), data), Store(root / commit)
    estimate = old["baselines"][0]["macro_f1"]
    baselines = [{"name": name, "macro_f1": estimate} for name in ("majority", "most_frequent", "tfidf")]
    sections = {"stage_effects": {**old["measured"], "stages": []}, "baselines": {"baselines": baselines}}
    document = {"dataset": {"texts": old["data"]["examples"]}, "sections": sections}
    for step in planned.steps:
        work = store.workspace(step.fingerprint)
        if step.name == LATTICE:
            (work / EVALUATION).write_text(json.dumps(document), encoding="utf-8")
        store.publish(
            Provenance(
                fingerprint=step.fingerprint, recipe=step.recipe, stage=step.name, kind=str(step.stage.kind),
                seed=step.seed, identity=dict(step.identity), parents=dict(step.parents), data=dict(step.data),
                files={}, result={"tokens": 10, "steps": 5},
                environment=Environment(
                    python="3", platform="", packages={}, commit=commit, started="2026-01-02T00:00:00", seconds=60.0
                ),
            )
        )  # fmt: skip
    return record_lattice(root, (), planned, store, prepared, {"version": "0.1.0", "commit": "ab" * 20})


def test_the_page_is_made_of_the_records() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == render_page(ROOT), "run: python -m tasks.records.lattices"


def test_a_record_says_when_at_which_commit_and_of_which_code(tmp_path: Path) -> None:
    record = recorded(tmp_path, COMMIT)
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert record["clean"] and "| current |" in page
    assert "| 2026-01-02, cursus 0.1.0, commit abababab, in a project at commit 01234567, clean tree; " in page
    for name in ("training majority", "most frequent test class", "TF-IDF + logistic regression"):
        assert f"| *{name}* |" in page
    path = tmp_path / "recipes" / "regime.yaml"
    written = path.read_text(encoding="utf-8")
    path.write_text(written + "# a comment changes nothing\n", encoding="utf-8")
    assert lattice_standing(tmp_path, record) == "current"
    path.write_text(written.replace("lr: 2.0e-3", "lr: 1.9e-3", 1), encoding="utf-8")
    assert written != path.read_text(encoding="utf-8") and lattice_standing(tmp_path, record) == "stale"
    assert "**, stale |" in render_page(tmp_path) and "| **stale** |" in render_page(tmp_path)
    other = {**record, "data": {**record["data"], "dataset": "chemprot"}}
    assert lattice_standing(tmp_path, other) == "gone", "a dataset that params.yaml does not have"
    del record["definitions"]
    assert lattice_standing(tmp_path, record) == "unknown"


def test_a_record_of_a_modified_tree_says_so(tmp_path: Path) -> None:
    record = recorded(tmp_path, f"{COMMIT}+")
    assert not record["clean"]
    assert "at commit 01234567, sources differed; " in (tmp_path / PAGE).read_text(encoding="utf-8")
