"""Ctrl-C in a terminal ends a run in order, and soon; the next run goes on."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psutil

PATIENCE = 120
"""Seconds from Ctrl-C to the prompt; a few on a free machine. A flow whose server has died takes minutes."""


def processes_of(checkout: Path) -> list[psutil.Process]:
    """What runs in the checkout."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(checkout) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


LONG = """
base: regime
stages:
  general:
    backbone:
      name: transformer
      architecture: bert
      positions: 256
      dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}
    budget: {tokens: 300000000, batch_tokens: 1024, length: 32}
"""
"""A small network that trains for hours."""


def test_ctrl_c_ends_training_server_and_runs(checkout: Path, environment: dict[str, str]) -> None:
    (checkout / "recipes" / "long.yaml").write_text(LONG, encoding="utf-8")
    command = [sys.executable, "-m", "flows.cli.app", "run", "long", "--until", "general", "--threads", "1"]
    running = subprocess.Popen(
        command, cwd=checkout, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
        # as in a terminal, also where the tests run in the background of a shell, which ignores it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    work = checkout / "data" / "store" / ".work"
    begun = time.monotonic()
    while not any(path.stat().st_size for path in work.glob("*/metrics.jsonl")):
        assert running.poll() is None, running.stdout and running.stdout.read()
        assert time.monotonic() - begun < 200, "training did not begin"
        time.sleep(0.2)
    begun = time.monotonic()
    os.killpg(running.pid, signal.SIGINT)
    said, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130, said
    assert said.rstrip().endswith("the same command continues from the last checkpoint"), said
    assert time.monotonic() - begun < PATIENCE
    assert not processes_of(checkout)
    with sqlite3.connect(checkout / ".cursus" / "mlflow.db") as database:
        assert not database.execute("select count(*) from runs where status = 'RUNNING'").fetchone()[0]
