"""A Ray cluster of two nodes on one machine: each has a loopback address of its own, and room for one rank."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tasks.servers.processes import free_port

HEAD, OTHER = "127.0.0.2", "127.0.0.3"
STARTED = "Ray runtime started"
SPARING = {
    "RAY_enable_worker_prestart": "0",  # those would have another environment than any job has
    "RAY_prestart_worker_first_driver": "0",
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
    "RAY_TRAIN_METRICS_ENABLED": "0",
}
"""A process fewer for each."""
SECONDS = 120
"""What a node may take to start on a machine that does other things as well."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster, and what a process needs in its environment to be let in."""

    address: str
    environment: dict[str, str]
    nodes: tuple[psutil.Process, ...]

    def processes(self, name: str = "") -> list[psutil.Process]:
        """The processes on all nodes whose command line begins with `name`."""
        found = []
        for node in self.nodes:
            for process in node.children(recursive=True):
                with suppress(psutil.Error):
                    if " ".join(process.cmdline()).startswith(name) and process.status() != psutil.STATUS_ZOMBIE:
                        found.append(process)
        return found

    def ranks(self) -> list[psutil.Process]:
        """The workers of Ray that train."""
        return self.processes("ray::RayTrainWorker")


@contextmanager
def two_raylets() -> Iterator[Cluster]:
    """Start the two nodes, and end them with everything they have started."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install -c requirements.lock -e '.[ray]'")
    try:
        with socket.create_server((OTHER, 0)):
            pass
    except OSError:
        pytest.skip(f"this system has one loopback address only: {OTHER} cannot be listened to")
    folder = Path(tempfile.mkdtemp(prefix="cursus-ray-"))  # short: the names of sockets are limited
    token = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
    } | SPARING
    port = free_port()
    nodes: list[psutil.Process] = []
    try:
        head = ["--head", "--port", str(port), "--include-dashboard", "false", "--temp-dir", str(folder / "ray")]
        for host, options in ((HEAD, head), (OTHER, ["--address", f"{HEAD}:{port}"])):
            nodes.append(_node(host, options, token, folder / f"{host}.log"))
        yield Cluster(f"{HEAD}:{port}", token, tuple(nodes))
    finally:
        for node in nodes:
            for process in (node, *node.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            node.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _node(host: str, options: Sequence[str], token: dict[str, str], log: Path) -> psutil.Process:
    command = [str(Path(sys.executable).with_name("ray")), "start", "--node-ip-address", host, "--num-cpus", "1"]
    command += [
        "--object-store-memory",
        "80000000",
        "--disable-usage-stats",
        "--include-log-monitor",
        "false",
        "--block",
        *options,
    ]
    with log.open("w") as output:
        child = psutil.Popen(
            command, env={**os.environ, **token}, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    deadline = time.monotonic() + SECONDS
    while STARTED not in log.read_text():
        assert child.poll() is None and time.monotonic() < deadline, f"no node at {host}: {log.read_text()[-2000:]}"
        time.sleep(0.1)
    return child
