"""Records of complete runs: what `cursus run` printed of a request that needed no computing, and on which files and
circumstances that depended.

    .cursus/complete_runs/<digest of the request and its circumstances>.json

While the state of each of those files is as it was, the same request has the same answer, and nothing is imported to
find it. A record decides nothing else: any that is missing, damaged or out of date is ignored.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.lineage import hardware
from pipelines.lineage.disk import atomic_write, unique_temporary_path
from pipelines.lineage.file_states import COMPILED, FileState, digest_of, states_of
from tasks.environment import state_folder

FOLDER = "complete_runs"
WRITTEN = (COMPILED, "data", "reports")
"""Folders of a project that its runs make."""
MOST_RECORDS = 32
"""Records of a project that are kept, the newest ones."""
LARGEST = 16 * 2**20
"""Bytes of a record that is read."""
OF_THE_TERMINAL = frozenset(
    ("_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "LANG")
    + ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LC_CTYPE", "CURSUS_LANGUAGE", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY")
    + ("SSH_AUTH_SOCK", "TMUX", "TMUX_PANE", "WINDOWID", "XDG_SESSION_ID")
)
"""Variables that decide how lines are shown, and not which: they are shown anew each time."""


class RunArguments(NamedTuple):
    """The arguments of `cursus run` that its plan depends on."""

    recipe: str | None
    dataset: str | None
    variants: tuple[str, ...]
    smoke: bool
    until: str | None


@dataclass(frozen=True)
class CompleteRun:
    """A request that needs no computing, and what is printed of it."""

    recipe: str
    dataset: str
    steps: int
    fingerprints: tuple[str, ...]
    """Fingerprints of the steps of the plan."""
    evaluations: tuple[tuple[str, str], ...]
    """Evaluate stage, and the file of its results."""
    commands: tuple[str, ...]
    """Next commands to suggest."""


@dataclass(frozen=True)
class RecordedRun:
    """A recorded answer, which is right as long as it is current."""

    run: CompleteRun
    paths: tuple[str, ...]
    """The files and folders that it depends on."""
    states: str
    """Digest of their states."""

    def is_current(self) -> bool:
        """Whether everything that the answer depends on is as it was."""
        return digest_of(states_of(self.paths)) == self.states


def record_of(root: Path, arguments: RunArguments) -> Path:
    """The file that records the answer to `arguments` in the project at `root`, in the circumstances of this process:
    to be called before anything changes its environment."""
    request = json.dumps([arguments, _circumstances()], sort_keys=True)
    return state_folder(root) / FOLDER / f"{sha256(request.encode('utf-8', 'surrogateescape')).hexdigest()}.json"


def read_complete_run(record: Path) -> RecordedRun | None:
    """A recorded answer; None where nothing is recorded, and for a file that is no record, or not this user's own."""
    try:
        descriptor = os.open(record, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, encoding="utf-8", errors="surrogateescape") as file:
            status = os.fstat(descriptor)
            own = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and status.st_size <= LARGEST
            seal, _, content = file.read().partition("\n") if own else ("", "", "")
        if seal != _seal(content):
            return None
        values = json.loads(content)
        run = values["run"]
        run["evaluations"] = tuple((stage, file) for stage, file in run["evaluations"])
        listed = {key: tuple(run[key]) for key in ("fingerprints", "commands")}
        return RecordedRun(CompleteRun(**{**run, **listed}), tuple(values["paths"]), values["states"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def write_complete_run(record: Path, run: CompleteRun, states: Mapping[str, FileState]) -> None:
    """Record an answer that depends on the files in `states`. On a full disk nothing is recorded."""
    content = json.dumps(asdict(RecordedRun(run, tuple(states), digest_of(states))), separators=(",", ":"))
    with suppress(OSError):
        record.parent.mkdir(mode=0o700, exist_ok=True)
        with atomic_write(record, unique_temporary_path(record)) as file:
            file.write_text(f"{_seal(content)}\n{content}", encoding="utf-8", errors="surrogateescape")
        others = sorted(record.parent.glob("*.json"), key=lambda one: one.stat().st_mtime_ns, reverse=True)
        for old in others[MOST_RECORDS:]:
            old.unlink(missing_ok=True)


def _circumstances() -> list[Any]:
    """What a plan depends on besides the content of files: the interpreter, what is installed, the machine, the
    environment."""
    variables = sorted((name, value) for name, value in os.environ.items() if name not in OF_THE_TERMINAL)
    machine = [hardware.accelerator(), hardware.gpus(), hardware.processor(), sorted(hardware.extensions())]
    packages = [[folder, _importable(folder or os.curdir)] for folder in sys.path]
    return [os.getcwd(), os.getuid(), sys.executable, sys.version, packages, tuple(os.uname()), machine, variables]


def _importable(folder: str) -> list[str]:
    """Names in a folder of modules and distributions, without those that runs and tools add to a project."""
    if not os.path.isdir(folder):
        return []
    return [name for name in sorted(os.listdir(folder)) if not name.startswith(".") and name not in WRITTEN]


def _seal(content: str) -> str:
    return sha256(content.encode("utf-8", "surrogateescape")).hexdigest()
