"""A store with the finished steps of a recipe: their records, and a file in place of each model."""

from __future__ import annotations

from pathlib import Path

from pipelines.lineage.provenance import DataSource, Environment, Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from pipelines.task_families import TaskFamily
from tests.steps import RECIPES

TABLES = ("general", "domain", "task_text", "train", "validation", "test")
SOURCES = {name: DataSource(digest=name, path=f"data/prepared/small/{name}.parquet") for name in TABLES}


def finished(root: Path, recipe: str, family: str = "text_classification") -> tuple[Store, dict[str, str]]:
    """The store, and label of each step that leaves a model → its fingerprint."""
    store, made = Store(root), dict[str, str]()
    library = Library(RECIPES)
    steps = plan(library.load(recipe), library, SOURCES, TaskFamily.model_validate(family)).steps
    for step in steps:
        if step.stage.kind.judges:
            continue
        (store.workspace(step.fingerprint) / "model.safetensors").write_bytes(b"")
        environment = Environment(
            python="3.11", platform="Linux", packages={}, commit=None, started="2026-01-01T00:00:00+00:00", seconds=1.0
        )
        store.publish(
            Provenance(
                fingerprint=step.fingerprint,
                recipe=step.recipe,
                stage=step.name,
                kind=str(step.stage.kind),
                seed=step.seed,
                identity=dict(step.identity),
                parents=dict(step.parents),
                data=dict(step.data),
                files={},
                result={},
                environment=environment,
            )
        )
        made[step.label] = step.fingerprint
    return store, made
