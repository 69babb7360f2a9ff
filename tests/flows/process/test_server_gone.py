"""Prefect's temporary server and the run that it belongs to: none is left behind, and its end is known at once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tasks.servers.prefect_application import FACTORY
from tasks.servers.temporary_server import DIED_STARTING
from tests.steps import ROOT

ALONE = """
import subprocess, sys, time
from flows.process.execute import _end_children_with_this
_end_children_with_this()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def until(what: Callable[[], bool], said: str, seconds: float = 900) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, said
        time.sleep(0.1)


def test_a_killed_flow_takes_its_server_with_it() -> None:
    flow = subprocess.Popen(
        [sys.executable, "-c", ALONE], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert flow.stdout is not None
    child = psutil.Process(int(flow.stdout.readline()))
    flow.kill()
    flow.communicate()
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "the child lives on", 30)


@pytest.mark.timeout(600)
def test_a_server_killed_while_it_starts_is_told_at_once(checkout: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "flows.cli.app", "run", "word2vec", "--smoke", "--until", "general"]
    running = subprocess.Popen(
        command, cwd=checkout, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        found: list[psutil.Process] = []

        def started() -> bool:
            for child in psutil.Process(running.pid).children(recursive=True):
                with suppress(psutil.Error):
                    if FACTORY in child.cmdline():
                        found.append(child)
            return bool(found) or running.poll() is not None

        until(started, "no server was started")
        found[0].kill()
        said, _ = running.communicate(timeout=100)  # Prefect would ask it for two minutes
    finally:
        running.kill()
    assert running.returncode == 2 and f"error: {DIED_STARTING}" in " ".join(said.split()), said
