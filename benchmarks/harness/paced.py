"""Processes that take turns: each runs its own training loop, and pauses at the start of a step
(`benchmarks.harness.gate`)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.checkouts import ROOT, users_shell
from benchmarks.harness.benchmark import Setting
from benchmarks.harness.record import Turn
from benchmarks.harness.turns import Turns, take_turns
from pipelines.lineage import hardware

ENDS_WITHIN = 10.0
"""Seconds that a process has to end after the last turn."""
LOG_TAIL = 3000
"""Characters of a process's output that its error message includes."""


class LoopFailed(Exception):
    """A training loop ended prematurely; the message has the end of its output."""


@dataclass(frozen=True)
class Loop:
    """A training loop to start: `python -m module argument`, in an environment."""

    module: str
    argument: Path
    """File with the training's settings."""
    units: float
    """Units per step: its tokens, or texts."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables added to those of a user's shell."""


def as_it_comes(setting: Setting) -> dict[str, str]:
    """Environment of other libraries' users: no tuning. Fewer threads than cores are set by OMP_NUM_THREADS."""
    quiet = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}
    return quiet if setting.threads == hardware.cores() else quiet | {"OMP_NUM_THREADS": str(setting.threads)}


class Paced:
    """The process of a loop. All methods raise LoopFailed if it ends prematurely."""

    def __init__(self, loop: Loop, log: Path) -> None:
        self.loop, self.log, self.started_in = loop, log, 0.0
        self._begun = time.perf_counter()
        with log.open("w", encoding="utf-8") as output:
            self._process = subprocess.Popen(
                # unbuffered: output and traceback stay in order
                [sys.executable, "-u", "-m", loop.module, str(loop.argument)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=ROOT,
                env={**users_shell(), "PYTHONPATH": str(ROOT), **loop.environment},
                text=True,
            )

    def ready(self) -> None:
        """Wait until its first step begins."""
        self._answer()
        self.started_in = time.perf_counter() - self._begun

    def turn(self, seconds: float, steps: int = 1) -> Turn:
        """Train for at least `seconds` seconds and `steps` steps."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"seconds": seconds, "steps": steps}) + "\n")
            self._process.stdin.flush()
        reply = self._answer()
        return Turn(units=reply["steps"] * self.loop.units, seconds=reply["seconds"], cpu=reply["cpu"])

    def finish(self) -> None:
        """Train to the last step, and wait for the process to end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"seconds": 0, "steps": sys.maxsize}) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        if not reply or "ended" not in json.loads(reply) or self._process.wait() != 0:
            raise LoopFailed(self._words())

    def end(self) -> None:
        """Close the pipe and wait for the process to end; kill it after `ENDS_WITHIN`."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            assert self._process.stdout is not None
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        reply: dict[str, Any] = json.loads(line) if line else {}
        if not line or "ended" in reply:
            raise LoopFailed(self._words())
        return reply

    def _words(self) -> str:
        words = self.log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL:]
        return f"{self.loop.module} {self.loop.argument.name} ended prematurely:\n{words}"


@dataclass(frozen=True)
class Paces:
    """The turns of several loops."""

    turns: Turns
    failed: dict[str, str]
    """Error messages of loops that failed."""
    started_in: dict[str, float]
    """Seconds from the start of each process to its first step."""
    warming: dict[str, Turn]
    """The warm-up steps of each loop."""

    def notes(self, case: str = "") -> list[str]:
        """A sentence for each loop that failed."""
        return [f"{case}{name} did not run: {why.strip().splitlines()[-1]}" for name, why in self.failed.items()]


def pace(
    loops: Mapping[str, Loop], folder: Path, *, rounds: int, seconds: float, warm: int = 3, steps: int = 1
) -> Paces:
    """Take turns among all loops, after `warm` uncounted steps of each.

    They start one after another, so that none compiles while another starts; all of them stay in memory.
    """
    failed: dict[str, str] = {}
    with ExitStack() as all_of_them:
        running: dict[str, Paced] = {}
        warming: dict[str, Turn] = {}
        for name, loop in loops.items():
            process = all_of_them.enter_context(Paced(loop, folder / f"{name}.log"))
            try:
                process.ready()
                warming[name] = process.turn(0, warm)
                running[name] = process
            except LoopFailed as error:
                failed[name] = str(error)
        turns = take_turns({name: partial(one.turn, seconds, steps) for name, one in running.items()}, rounds)
    return Paces(turns, failed, {name: one.started_in for name, one in running.items()}, warming)
