"""The server of a run: several start together in a fresh checkout, and each answers its own run alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.servers.temporary_server import PREFECT_SETTINGS
from tests.steps import ROOT

from .conftest import status

PROGRAM = """
import json, os, sys
from pathlib import Path
from tasks.servers.environment import prepare_environment
prepare_environment(Path(sys.argv[1]))
from tasks.servers.temporary_server import TemporaryServer
server = TemporaryServer.start_if_needed(Path(sys.argv[1]))
server.wait()
from prefect.client.orchestration import get_client
with get_client(sync_client=True) as client:
    client.create_flow_from_name("told")
print(json.dumps(server.clients), flush=True)
sys.stdin.readline()
"""


@pytest.mark.timeout(300)
def test_three_servers_start_together_in_a_fresh_checkout_and_know_their_own_run(tmp_path: Path) -> None:
    """Each would create the same database; without a lock, all but one end with `table already exists`."""
    left_out = {*PREFECT_SETTINGS, "PREFECT_API_AUTH_STRING", "PREFECT_HOME", "CURSUS_ROOT", "MLFLOW_TRACKING_URI"}
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            cwd=ROOT, env={**environment, "PYTHONPATH": str(ROOT)}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]  # fmt: skip
    try:
        told = [json.loads(line) for run in runs if run.stdout is not None if (line := run.stdout.readline())]
        assert len(told) == 3, "\n".join(run.communicate()[1][-2000:] for run in runs)
        assert len({one["PREFECT_API_URL"] for one in told}) == 3
        assert len({one["PREFECT_API_AUTH_STRING"] for one in told}) == 3
        for one in told:
            assert status(f"{one['PREFECT_API_URL']}/health")[0] == 200
            assert status(f"{one['PREFECT_API_URL']}/admin/version")[0] == 401, "another user of the machine"
    finally:
        ended = [run.communicate("\n", timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], ended
