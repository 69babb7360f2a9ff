"""One `cursus run` of a checkout, observed from outside: its output, its processor time, whether it makes progress."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

HANG_SECONDS = 60.0
IDLE_SHARE = 0.1
"""Share of a core that servers and polling loops use without progress."""
LOOK_SECONDS = 0.2
SENTENCE = re.compile(r"^error: \S.{20,}", re.MULTILINE)
STOPPED = "the same command continues"


@dataclass(frozen=True)
class Ending:
    """The end of an attempt."""

    status: int
    output: str
    seconds: float
    hung: bool = False
    killed: bool = False
    """Whether the campaign killed the command itself, which then has no output."""

    @property
    def success(self) -> bool:
        return self.status == 0 and not self.hung

    @property
    def error(self) -> str | None:
        """The error sentence at its end; None when there is none."""
        match = SENTENCE.search(self.output)
        return match[0] if match else None

    @property
    def clear(self) -> bool:
        """Whether the output tells a user what happened and what to do."""
        if self.success or self.killed or self.hung:
            return True
        explained = (self.status == 2 and self.error is not None) or (self.status == 130 and STOPPED in self.output)
        return explained and "Traceback (most recent call last)" not in self.output

    @property
    def words(self) -> str:
        """A description for the record, with the paths of this machine."""
        if self.killed:
            return "killed"
        if self.hung:
            return "hung"
        if self.success:
            return "finished"
        last = next((line for line in reversed(self.output.splitlines()) if line.strip()), "(no output)")
        return self.error or f"status {self.status}: {last.strip()}"


class Attempt:
    """A command that runs in `folder`; `mark` is an environment variable that it and all its descendants inherit."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], mark: tuple[str, str], output: Path
    ) -> None:
        self.folder, self.mark, self._output = folder, mark, output
        self._begun = time.monotonic()
        self._cpu: dict[tuple[int, float], float] = {}
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                command, cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def processes(self) -> list[psutil.Process]:
        """The command and its descendants, the command first."""
        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(self._process.pid)
            return [first, *first.children(recursive=True)]
        return []

    def find(self, word: str) -> list[psutil.Process]:
        """Its processes whose command line contains `word`."""
        matches = []
        for process in self.processes():
            with suppress(psutil.Error):
                if word in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                    matches.append(process)
        return matches

    def cpu(self) -> float:
        """Seconds of processor time used by its processes: the clock for random moments, because other load does not
        affect it."""
        for process in self.processes():
            with suppress(psutil.Error):
                times = process.cpu_times()
                self._cpu[process.pid, process.create_time()] = times.user + times.system
        return sum(self._cpu.values())

    def watch(self, until: Callable[[], object] | None = None) -> bool:
        """Wait until `until` returns true; False when the command ended first. The command is killed when it hangs."""
        seen, moved, cpu, runnable = self._traces(), time.monotonic(), self.cpu(), 0.0
        while True:
            if until is not None and until():
                return True
            if self._process.poll() is not None:
                return False
            time.sleep(LOOK_SECONDS)
            now, used = time.monotonic(), self.cpu()
            runnable += LOOK_SECONDS * self._is_runnable()
            if (traces := self._traces()) != seen or used - cpu + runnable > IDLE_SHARE * HANG_SECONDS:
                seen, moved, cpu, runnable = traces, now, used, 0.0
            elif now - moved > HANG_SECONDS:
                self._hung = True
                self.kill_all()

    _hung = False

    def kill(self, process: psutil.Process) -> None:
        """Send SIGKILL."""
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)

    def kill_all(self) -> None:
        """Send SIGKILL to all processes that this command has started, orphans included."""
        for process in marked(self.mark):
            self.kill(process)
        self._process.wait()

    def ended(self, killed: bool = False) -> Ending:
        """Wait for its end; `killed` means that the campaign killed the command itself."""
        self.watch()
        self._process.wait()
        output = self._output.read_text(encoding="utf-8", errors="replace")
        return Ending(self._process.returncode, output, time.monotonic() - self._begun, self._hung, killed)

    def _is_runnable(self) -> bool:
        """Whether one of its processes is runnable, and only waits for a busy processor."""
        for process in self.processes():
            with suppress(psutil.Error):
                if process.status() == psutil.STATUS_RUNNING:
                    return True
        return False

    def _traces(self) -> tuple[object, ...]:
        """A fingerprint of output and files that changes with progress."""
        files: list[tuple[str, int, int]] = []
        for top in ("data/store", "reports", ".cursus/logs"):
            for folder, _, names in os.walk(self.folder / top):
                for name in names:
                    with suppress(OSError):
                        stat = os.stat(os.path.join(folder, name))
                        files.append((f"{folder}/{name}", stat.st_size, stat.st_mtime_ns))
        return (self._output.stat().st_size, *files)


def marked(mark: tuple[str, str]) -> list[psutil.Process]:
    """All processes with an environment variable, orphans included."""
    matches = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(mark[0]) == mark[1] and process.status() != psutil.STATUS_ZOMBIE:
                matches.append(process)
    return matches
