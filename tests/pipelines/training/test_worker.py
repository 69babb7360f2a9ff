"""The worker process of the local launcher, before its first job."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from pipelines.lineage.results import COMPILED

PATIENCE = 120.0


def test_kernels_are_compiled_while_the_first_job_is_prepared(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipelines.training.ranks.worker", "--cache", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as worker:
        deadline = time.monotonic() + PATIENCE
        while not list((tmp_path / COMPILED).glob("*.so")) and worker.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(list((tmp_path / COMPILED).glob("*.so"))) == 1
        assert worker.poll() is None, "it waits for a job"
