"""A flow whose server stops after it was found, and before the flow begins, runs on a server of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.process.execute import execute
from tasks.servers.services import Services

FLOW = """
import json, os, signal
from pathlib import Path

from prefect import flow
from pydantic import BaseModel

from flows.process.computing import begin
from tasks.servers.processes import answers

record = Path(os.environ["CURSUS_ROOT"], ".cursus", "services.json")
killed = record.with_name("killed-once")
if not killed.exists():
    killed.touch()
    services = json.loads(record.read_text())
    os.kill(services["prefect"]["pid"], signal.SIGKILL)
    while answers(services["prefect_url"] + "/api/health"):
        pass


class Config(BaseModel):
    word: str


class Result(BaseModel):
    word: str
    api: str


@flow(name="stopped")
def stopped(config: Config) -> Result:
    return begin(lambda root: Result(word=config.word, api=os.environ["PREFECT_API_URL"]))
"""


@pytest.mark.timeout(300)
def test_a_flow_whose_server_stopped_before_it_began_is_started_again(servers: Services, project: Path) -> None:
    module = project / "flows" / "stopped.py"
    module.write_text(FLOW)
    try:
        result = execute({"word": "kept"}, project, "stopped")
    finally:
        module.unlink()
    assert (project / ".cursus" / "killed-once").exists()
    assert result["word"] == "kept" and not result["api"].startswith(servers.prefect_url)
