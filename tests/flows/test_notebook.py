"""The notebook: its cells run one after the other in one process, and end with a model and its lineage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.conftest import FirstRun, users_shell, write_computed
from tests.steps import ROOT

CELLS = """
import json, sys
from pathlib import Path
shared = {}
for cell in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]), shared)
print("fingerprint", shared["model"].fingerprint)
print("computed", *shared["run"].computed)
"""


@pytest.fixture(scope="module")
def checkout(first: FirstRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of its own: other tests count the runs of the first one."""
    return write_computed(tmp_path_factory.mktemp("notebook"), first, tmp_path_factory)


def test_the_notebook_runs(first: FirstRun, checkout: Path, server: dict[str, str]) -> None:
    command = [sys.executable, "-c", CELLS, str(ROOT / "docs" / "notebook.ipynb")]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**users_shell(checkout), **server, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *shown, made, computed = done.stdout.splitlines()
    final = next(record for record in first.made if record.stage == "int8")
    assert made == f"fingerprint {final.fingerprint}"
    assert computed == "computed", "everything was in the store"
    assert any("accuracy" in line and "[" in line for line in shown) and any("└─ int8 ◀" in line for line in shown)


def test_the_notebook_holds_no_results() -> None:
    cells = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code"), "clear its outputs"
