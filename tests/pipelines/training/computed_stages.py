"""The stages of a small recipe, computed one after the other, and the matrices that they leave."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from pipelines.lineage.provenance import DataSource
from pipelines.recipe.job import Job, Runtime
from pipelines.training.ranks.run import run
from tests.steps import job_of, library_of, plan_of


def computed(
    root: Path, name: str, recipe: str, tables: dict[str, Path], sources: dict[str, DataSource]
) -> dict[str, Job]:
    """Stage → the job that computed it, below `root`, without interruption."""
    plan = plan_of(library_of(root, **{name: recipe}), name, sources)
    folders = {step.fingerprint: root / step.name for step in plan.steps}
    made = {}
    for step in plan.steps:
        made[step.name] = job_of(step, folders, tables, root / step.name, Runtime(log_every=1, checkpoint_every=4))
        run(made[step.name])
    return made


def matrices(folder: Path) -> dict[str, Tensor]:
    """The weights of linear layers inside the layers of a BERT."""
    weights = load_file(folder / "model.safetensors")
    return {
        name: value for name, value in weights.items() if name.startswith("bert.encoder.layer.") and value.ndim == 2
    }
