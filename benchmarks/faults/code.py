"""Identity of what a disturbed run executes: cases of one identity belong to one campaign.

    the commands, flows, tasks, servers, launchers, store, training and kernels         by their syntax
    the stages of the campaign's recipes, and the parts that these name                 by their fingerprints
    settings, the campaign's own recipes                                                by their bytes
    Prefect, MLflow, DVC, torch …                                                       by their versions

Another recipe, a part that no recipe here names, a check of recipes, a page of records or a comment changes none of
this, and a campaign that takes hours goes on after it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import shutil
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.checkouts import ROOT
from pipelines.lineage.fingerprint import digest_file, library_versions
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.source import closure
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from pipelines.task_families import TaskFamily

RECIPES = Path(__file__).parent / "recipes"
"""The recipes, and the files that they read."""
EXECUTED = (
    "flows.cli.data",
    "flows.cli.run",
    "flows.process.execute",
    "flows.stage",
    "pipelines.parts.accelerators.cpu_kernels.library",
    "pipelines.training.loop.fit",
    "pipelines.training.ranks.local_ranks",
    "pipelines.training.ranks.worker",
    "tasks.launchers.child",
    "tasks.launchers.local",
    "tasks.servers.mlflow_application",
    "tasks.servers.prefect_application",
    "tasks.servers.tracking_database",
    "tasks.servers.worker",
)
"""Modules with which the processes of a run begin."""
COVERED = (
    "pipelines.corpora.documentation",
    "pipelines.corpora.settings",
    "pipelines.corpora.steps.sources",
    "pipelines.judging",
    "pipelines.messages",
    "pipelines.recipe",
    "pipelines.reports",
    "pipelines.task_families",
)
"""Rooms that decide what is computed, which the fingerprints of the steps cover, and what is shown of it, which no
fault touches."""
SETTINGS = ("dvc.yaml", "prefect.yaml", ".dvc/config", ".dvcignore")
"""Without params.yaml: the campaign's checkouts have their own."""
LIBRARIES = ("dvc", "mlflow", "prefect", "pytorch-lightning", "sqlalchemy", "torch", "transformers")
TABLES = ("general", "domain", "task_text", "train", "validation", "test", "general_heldout")
FAMILIES = {"features": "tagging"}
"""Task family by recipe, where it is not the classification of texts."""


@cache
def code() -> str:
    """64 hex digits."""
    versions = library_versions(LIBRARIES)
    lines = [
        *(f"{module} {_syntax(module)}" for module in sorted(executed())),
        *steps_of(),
        *(digest_file(path) for path in sorted(RECIPES.iterdir())),
        *(digest_file(ROOT / name) for name in SETTINGS if (ROOT / name).exists()),
        *(f"{name} {version}" for name, version in sorted(versions.items())),
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def executed() -> frozenset[str]:
    """`EXECUTED` and all that they import, but for the rooms of `COVERED`."""
    modules = frozenset[str]().union(*(closure(module) for module in EXECUTED))
    return frozenset(one for one in modules if not any(f"{one}.".startswith(f"{room}.") for room in COVERED))


def _syntax(module: str) -> str:
    """A module as a tree, without comments and the first strings of what has a docstring."""
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_bytes())
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)


def steps_of(folder: Path = RECIPES) -> list[str]:
    """Fingerprints of the steps of the campaign's recipes, over tables of fixed digests."""
    data = {name: DataSource(digest=name, path=name) for name in TABLES}
    with TemporaryDirectory() as checkout, chdir(checkout):  # recipes name files of the checkout that they are put into
        library = Library(Path(shutil.copytree(folder, "recipes")))
        plans = [
            plan(
                library.load(name), library, data, TaskFamily.model_validate(FAMILIES.get(name, "text_classification"))
            )
            for name in sorted(path.stem for path in folder.glob("*.yaml"))
        ]
    return [step.fingerprint for one in plans for step in one.steps]
