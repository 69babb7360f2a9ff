"""DVC in a process of its own, on the stages of one dataset.

The stages `wait_for_runs` and `pin` are left out: callers hold the data lock (`tasks.datasets.lock`) and refresh the
pin themselves.
"""

from __future__ import annotations

import io
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil

from pipelines.corpora.steps.pin import STEPS
from pipelines.lineage.disk import write_text_atomically
from pipelines.safety.redaction import redacted
from tasks.datasets.dvc_lock import PATHS, dvc_excluded
from tasks.environment import QUIET, append_privately, state_folder

BUSY = re.compile(r"is busy, it is being blocked by:\n((?:  \(PID \d+\): .*\n)+)")
"""DVC's error while another of its processes uses a path; `--wait-for-lock` does not cover it."""
TABLE = Path(".dvc", "tmp", "rwlock")
"""DVC's table of the paths that its processes read and write."""
OCCUPIED = "waiting: another dvc process uses this dataset"
RETRY_SECONDS = 1.0
SILENT_SECONDS = 10.0


def repro(
    dataset: str,
    root: Path,
    log: Path,
    on_line: Callable[[str], None],
    on_silence: Callable[[], None],
    variables: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Run the stages of `dataset` that are out of date; returns DVC's exit status and output, which is also in `log`.

    `on_line` receives each line; `on_silence` is called when none has come for SILENT_SECONDS. `variables` are further
    ones of the environment of its steps. Waits for other processes of DVC that use the same paths.
    """
    waiting = False
    while True:
        _discard_torn_table(root)
        status, output = _repro(dataset, root, log, on_line, on_silence, variables or {})
        blocked = BUSY.search(output)
        if not status or blocked is None:
            return status, output
        blockers = {int(pid) for pid in re.findall(r"\(PID (\d+)\)", blocked[1])}
        if not any(psutil.pid_exists(pid) and is_dvc(psutil.Process(pid)) for pid in blockers):
            _forget(blockers, root)
        elif not waiting:
            on_line(OCCUPIED)
            waiting = True
        time.sleep(RETRY_SECONDS)


def is_current(dataset: str, root: Path) -> bool:
    """Whether `repro` would run nothing."""
    command = _command("status", "--quiet", *_stages(dataset))
    return subprocess.run(command, cwd=root, env=_environment(root), capture_output=True).returncode == 0


def restore(dataset: str, root: Path, earlier: str) -> None:
    """Return a dataset's entries of dvc.lock to those of the `earlier` text of it, and its outputs to what they name.

    The version that is replaced stays in DVC's cache: preparing it again computes nothing until its validation.
    """
    from ruamel.yaml import YAML

    lock = root / "dvc.lock"
    reader = YAML(typ="safe")
    reader.default_flow_style = False
    content = reader.load(lock.read_text(encoding="utf-8"))
    stages = reader.load(earlier)["stages"]
    content["stages"].update({name: stages[name] for name in _stages(dataset) if name in stages})
    text = io.StringIO()
    reader.dump(content, text)
    write_text_atomically(lock, text.getvalue())
    command = _command("checkout", "--force", "--quiet", *_stages(dataset))
    subprocess.run(command, cwd=root, env=_environment(root), capture_output=True)


def is_dvc(process: psutil.Process) -> bool:
    """Whether the process is a `dvc` command."""
    try:
        return any(Path(word).name == "dvc" for word in process.cmdline()[:3])
    except psutil.Error:
        return False


def _repro(
    dataset: str,
    root: Path,
    log: Path,
    on_line: Callable[[str], None],
    on_silence: Callable[[], None],
    variables: Mapping[str, str],
) -> tuple[int, str]:
    lines: list[str] = []
    with (
        append_privately(log, anew=True) as record,
        subprocess.Popen(
            _command("repro", "--single-item", *_stages(dataset)),
            cwd=root,
            env={**_environment(root), **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        try:
            for line in _lines(process.stdout, on_silence):
                record.write(redacted(line).encode())
                record.flush()
                lines.append(line)
                on_line(line)
        except BaseException:
            _terminate(process.pid)
            raise
    return process.returncode, "".join(lines)


def _lines(output: IO[str] | None, on_silence: Callable[[], None]) -> Iterator[str]:
    """The lines of a process as they come."""
    waiting: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in output or ():
            waiting.put(line)
        waiting.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = waiting.get(timeout=SILENT_SECONDS)
        except queue.Empty:
            on_silence()
            continue
        if line is None:
            return
        yield line


def _terminate(pid: int) -> None:
    """Terminate DVC and the step that it runs, which would outlive it."""
    with suppress(psutil.NoSuchProcess):
        dvc = psutil.Process(pid)
        for process in (dvc, *dvc.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.terminate()


def _forget(killed: set[int], root: Path) -> None:
    """Delete what killed processes have left in DVC's table of locks. DVC does so itself, unless the system has given
    their ids to other programs."""
    table = root / TABLE
    with dvc_excluded(root, PATHS):
        locks = json.loads(table.read_text(encoding="utf-8"))
        write = {path: owner for path, owner in locks.get("write", {}).items() if owner["pid"] not in killed}
        read = {
            path: [one for one in owners if one["pid"] not in killed] for path, owners in locks.get("read", {}).items()
        }
        kept = {"write": write, "read": {path: owners for path, owners in read.items() if owners}}
        write_text_atomically(table, json.dumps(kept))


def _discard_torn_table(root: Path) -> None:
    """Delete DVC's table of locks where a process was killed while it wrote it: DVC would refuse to run until somebody
    did so by hand."""
    table = root / TABLE
    with dvc_excluded(root, PATHS):
        try:
            json.loads(table.read_bytes() if table.exists() else b"{}")
        except ValueError:
            table.unlink()


def _stages(dataset: str) -> list[str]:
    return [f"{step}@{dataset}" for step in (*STEPS, "validate", "card")]


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dvc", "--wait-for-lock", *arguments]


def _environment(root: Path) -> dict[str, str]:
    here = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONUNBUFFERED": "1",
        # DVC's site cache stays in this checkout: its default is a folder shared by all users
        "DVC_SITE_CACHE_DIR": str(state_folder(root) / "dvc"),
    }
    return QUIET | os.environ | here
