"""A child process on this machine that runs jobs for a launcher, and ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tasks.environment import append_privately
from tasks.launchers.environment import training_environment
from tasks.launchers.following import last_error

GRACE_SECONDS = 10.0
"""Time that a child has to shut down cleanly."""


class Child:
    """A process that ends when its standard input closes: when this process closes it, or dies. It sees the GPUs
    `held`."""

    def __init__(
        self,
        root: Path,
        log: Path,
        command: tuple[str, ...],
        serves_many: bool = False,
        grace: float = GRACE_SECONDS,
        held: tuple[str, ...] = (),
    ) -> None:
        self.log, self.serves_many, self.grace, self.held = log, serves_many, grace, held
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(held)} if held else {}
        with append_privately(log, anew=True) as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=root,
                env={**os.environ, **training_environment(), **visible},
                text=True,
                start_new_session=True,  # Ctrl-C reaches only the parent, which shuts the child down cleanly
            )

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def submit(self, order: Path) -> None:
        """Send the path of a serialised job to the process."""
        assert self._process.stdin is not None
        # the process may just have ended; `follow` then reports that the job failed
        with suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(f"{order}\n")
            self._process.stdin.flush()

    def wait(self) -> None:
        """Let the process end by itself within `grace` seconds; terminate it after that."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(self.grace)
        self.end()

    def end(self) -> None:
        """Close the standard input, terminate the process, and kill it when it does not end within `grace` seconds."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        if self.alive():
            self._process.terminate()
            try:
                self._process.wait(self.grace)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def failure_reason(self) -> str:
        """Why the process ended: the signal, the exception in its log, or the exit status."""
        status = self._process.wait()
        if status < 0:
            reason = f"killed by {signal.Signals(-status).name}"
            return reason + ", as the system does when memory runs out" if -status == signal.SIGKILL else reason
        return last_error(self.log) or f"exit status {status}"
