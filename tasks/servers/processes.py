"""Background processes of this checkout: start one, recognise it later, stop it with all its descendants.

A process id alone is not an identity, because the system reuses ids: a record also holds the creation time. A process
tree is not enough to find a server's children, because init adopts the children of a killed parent: every process
started here also has the checkout's path in its environment, which its descendants inherit.
"""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import psutil
from pydantic import BaseModel

from tasks.environment import append_privately

MARK = "CURSUS_SERVICE"
"""Environment variable that identifies a process's service and checkout: `worker@/home/me/cursus`."""


class Process(BaseModel):
    """A started process: its id and creation time (seconds since the epoch)."""

    pid: int
    created: float

    def alive(self) -> bool:
        """Whether this process still runs (neither another process with a reused id, nor a zombie)."""
        return self.handle() is not None

    def handle(self) -> psutil.Process | None:
        """The running process, or None."""
        try:
            process = psutil.Process(self.pid)
            if abs(process.create_time() - self.created) > 1 or process.status() == psutil.STATUS_ZOMBIE:
                return None
        except psutil.NoSuchProcess:
            return None
        return process


def start(
    name: str, command: Sequence[str], *, root: Path, environment: Mapping[str, str], log: Path, private: bool = False
) -> Process:
    """Start `command` in the background as service `name`, in `root`, in its own session; output is appended to
    `log`. Files that a `private` process creates are for its owner alone."""
    with append_privately(log) as output:
        child = subprocess.Popen(
            command,
            cwd=root,
            env={**environment, MARK: f"{name}@{root}"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=0o077 if private else -1,
        )
    # the child outlives this process: without this, Popen warns about it when it is garbage-collected
    child.returncode = 0
    return Process(pid=child.pid, created=psutil.Process(child.pid).create_time())


def stop(processes: Sequence[psutil.Process], *, patience: float = 10) -> None:
    """Stop these processes: SIGTERM, then SIGKILL for those still running after `patience` seconds."""
    for process in processes:
        try:
            process.terminate()
        except psutil.NoSuchProcess:
            continue
    _, stubborn = psutil.wait_procs(processes, timeout=patience)
    for process in stubborn:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(stubborn, timeout=patience)


def tree(process: Process) -> list[psutil.Process]:
    """The process and its descendants; empty when it has ended."""
    handle = process.handle()
    if handle is None:
        return []
    try:
        return [handle, *handle.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def marked(name: str, root: Path) -> list[psutil.Process]:
    """Every process of service `name` of the checkout at `root`, orphans included, except the caller and its
    ancestors."""
    own = psutil.Process()
    excluded = {own.pid, *(parent.pid for parent in own.parents())}
    matches = []
    for process in psutil.process_iter():
        if process.pid in excluded:
            continue
        try:
            if process.environ().get(MARK) == f"{name}@{root}" and process.status() != psutil.STATUS_ZOMBIE:
                matches.append(process)
        except (psutil.Error, OSError):
            continue
    return matches


def port_taken(port: int) -> bool:
    """Whether something on this machine listens on, or has reserved, `port` of the loopback address."""
    with closing(socket.socket()) as probe:
        probe.settimeout(1)
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            return True
    with closing(socket.socket()) as probe:
        # without this, leftover connections of a server that has just stopped would count as in use
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def free_port() -> int:
    """A currently unused port of the loopback address."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str, *, timeout: float = 2) -> bool:
    """Whether a GET of `url` on the loopback address succeeds; a configured proxy is bypassed."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=timeout) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def wait_until_answers(url: str, process: Process, *, seconds: float) -> bool:
    """Wait for `url` to answer while `process` runs; False when it has ended, or did not answer in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answers(url):
            return process.alive()
        if not process.alive():
            return False
        time.sleep(0.2)
    return False
