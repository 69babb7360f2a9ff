"""The dependency rule, and what may be imported before it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.named_tables import named_tables
from tests.steps import ROOT

HEAVY = ("torch", "transformers", "prefect", "mlflow", "great_expectations", "dvc", "pandas", "sklearn", "onnxruntime")
PLAN = """
import json, sys
from pathlib import Path
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from pipelines.recipe.profiles import smoke
from pipelines.task_families import TaskFamily
import tasks.datasets.planning, tasks.datasets.prepared
library = Library(Path("recipes"))
tables, named = json.loads(sys.argv[1])
families = {name: TaskFamily.model_validate(family) for name, family in named.items()}
data = {n: DataSource(digest=n, path=n) for n in tables}
for name in library.names():
    plan(smoke(library.load(name)), library, data, families=families)
"""
CLI = """
import sys
from flows.cli.app import app
sys.argv = ["cursus", *{arguments!r}]
try:
    app()
except SystemExit as ended:
    assert not ended.code, ended.code
"""


def test_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def imported(code: str, *arguments: str) -> set[str]:
    """The heavy packages that running `code` in a new process imports."""
    code = f"{code}\nimport json, sys\nprint('\\n' + json.dumps(sorted(set({HEAVY!r}) & set(sys.modules))))"
    environment = {**os.environ, "CURSUS_ROOT": str(ROOT)}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_planning_starts_nothing_heavy() -> None:
    assert imported(PLAN, json.dumps(named_tables())) == set(), (
        "a plan is made, and a cached run ended, before these are paid for"
    )


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["run", "--help"], ["recipes"], ["recipes", "regime"], ["systems"], ["systems", "electra"]],
    ids=" ".join,
)
def test_the_command_line_answers_before_anything_heavy(arguments: list[str]) -> None:
    assert imported(CLI.format(arguments=arguments)) == set()
