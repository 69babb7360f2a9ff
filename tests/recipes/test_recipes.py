"""Every recipe of the house loads, plans, and survives a few steps of each of its stages on real text."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipelines.job import METRICS, RESULT
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.load import Library
from pipelines.recipe.schema import Kind
from pipelines.training.reporting import read_metrics
from pipelines.training.run import run
from tests.steps import RECIPES, job_of, plan_of

NAMES = sorted(path.stem for path in RECIPES.glob("*.yaml"))
FORMS = [
    (name, variant)
    for name in NAMES
    for variant in ("", *(YAML(typ="safe").load(RECIPES / f"{name}.yaml").get("variants") or ()))
]
"""Every recipe as it stands, and under each of its variants."""


@pytest.fixture(scope="module")
def made() -> dict[str, Path]:
    """Folder of every step made so far, by fingerprint: what two recipes share is trained once."""
    return {}


@pytest.mark.parametrize(("name", "variant"), FORMS)
def test_loads_and_plans(name: str, variant: str, sources: dict[str, DataSource]) -> None:
    plan = plan_of(Library(RECIPES), name, sources, *filter(None, [variant]))
    assert {step.name for step in plan.steps if step.recipe == name} == set(plan.recipe.stages)
    assert len({step.fingerprint for step in plan.steps}) == len(plan.steps), "two steps would share an artifact"
    done: set[str] = set()
    for step in plan.steps:
        assert set(step.parents.values()) <= done, f"{step.label} comes before what it starts from"
        done.add(step.fingerprint)


@pytest.mark.parametrize(("name", "variant"), FORMS)
def test_survives_the_smoke_profile(
    name: str,
    variant: str,
    sources: dict[str, DataSource],
    tables: dict[str, Path],
    made: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    plan = plan_of(Library(RECIPES), name, sources, *filter(None, [variant]), tiny=True)
    for step in plan.steps:
        # seeds differ in nothing that could break, so the first stands for all
        if step.stage.kind is Kind.EVALUATE or step.seed != step.stage.seeds[0] or step.fingerprint in made:
            continue
        job = job_of(step, made, tables, tmp_path_factory.mktemp(step.name))
        result = run(job)
        made[step.fingerprint] = job.out
        assert (job.out / RESULT).exists() and (job.out / "config.json").exists()
        assert result.parameters > 0
        if step.stage.trains:
            lines = read_metrics(job.out / METRICS)
            assert lines[-1]["step"] == result.steps > 0
            assert any(f"train/{term}" in line for line in lines for term in [o.name for o in step.stage.objective])


def test_every_recipe_names_its_paper_and_fits_on_a_screen() -> None:
    for name in NAMES:
        assert Library(RECIPES).load(name).paper.partition(":")[0] in ("arXiv", "doi"), (
            f"{name}: say which system it is"
        )
        assert len((RECIPES / f"{name}.yaml").read_text().splitlines()) <= 120, (
            f"{name}: a recipe is read at one glance"
        )
