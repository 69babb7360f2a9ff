"""A copy of the project with more parts, whose code a process of its own imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.copied_sources import copy_code
from tests.steps import ROOT

PREPARE = """
import json, sys
from pathlib import Path
import torch
import pipelines
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.recipe.job import Runtime
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tests.steps import job_of, library_of, plan_of
folder, *tables = map(Path, sys.argv[1:])
assert Path(pipelines.__file__).is_relative_to(folder)
tables = {path.stem: path for path in tables}
sources = {name: DataSource(digest=name, path=str(path)) for name, path in tables.items()}
"""
STAGES = (
    PREPARE
    + """
from safetensors.torch import load_file
from tests.pipelines.training.test_resume_of_shapes import interrupted
plan = plan_of(library_of(folder, small=(folder / "small.yaml").read_text()), "small", sources)
steps = {step.name: step for step in plan.steps}
folders = {step.fingerprint: folder / step.name for step in plan.steps}
def job(name, out):
    return job_of(steps[name], folders, tables, out, Runtime(log_every=7, checkpoint_every=5))
def weights(name):
    return load_file(folder / name / "model.safetensors")
def resumed(name, at=7):
    "The step from which a run of stage `name` resumes that was interrupted at `at`, and whether it ends the same."
    again = job(name, folder / f"{name}-again")
    interrupted(again, at)
    begins = run(again).resumed_from_step
    one, other = weights(name), weights(f"{name}-again")
    return begins, one.keys() == other.keys() and all(torch.equal(value, other[key]) for key, value in one.items())
for step in plan.steps:
    if not step.stage.kind.judges:
        run(job(step.name, folder / step.name))
"""
)
"""Trains every stage of a recipe that trains into a folder of its name."""


def outcome_with(folder: Path, files: Mapping[str, str], recipe: str, tables: dict[str, Path], script: str) -> Any:
    """What `script` prints last, as JSON, in a copy of the project with more files below `pipelines`, path → source,
    and `recipe` as small.yaml. Its arguments are the copy's folder and the tables."""
    copy_code(ROOT / "pipelines", folder / "pipelines")
    for file, source in files.items():
        added = folder / "pipelines" / file
        assert not added.exists()
        added.write_text(source, encoding="utf-8")
    (folder / "small.yaml").write_text(recipe, encoding="utf-8")
    command = [sys.executable, "-c", script, str(folder), *map(str, tables.values())]
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
