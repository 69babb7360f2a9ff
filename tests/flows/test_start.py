"""What a run waits for before it begins: no library that only training needs, and no server where there is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tasks.servers.temporary_server import PREFECT_SETTINGS, TemporaryServer
from tests.steps import ROOT

BEGUN = """
import sys
from pathlib import Path
from tasks.servers.environment import prepare_environment
prepare_environment(Path(sys.argv[1]))
from tasks.launchers.settings import load_training
load_training(Path.cwd())
before = set(sys.modules)
import flows.compress, flows.lattice, flows.promote, flows.regime, flows.reproduce, flows.stage
heavy = {"torch", "pytorch_lightning", "transformers", "mlflow", "pandas", "great_expectations"}
server = {"prefect.server.api.server"} & set(sys.modules)
print(*sorted(heavy & set(sys.modules)), *sorted({"prefect"} & before), *sorted(server))
"""


def test_a_flow_begins_without_what_only_training_needs(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", BEGUN, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [], "each costs every run seconds: import it where it is used"


@pytest.mark.parametrize("told", [*PREFECT_SETTINGS, "a profile"])
def test_prefect_is_left_alone_where_it_has_been_told_of_a_server(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PREFECT_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    if told in PREFECT_SETTINGS:
        monkeypatch.setenv(told, "http://127.0.0.1:1/api")
    else:
        (tmp_path / "profiles.toml").write_text("")
    assert TemporaryServer.start_if_needed(tmp_path) is None
