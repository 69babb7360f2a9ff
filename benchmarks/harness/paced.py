"""Processes that are given turns: each runs its own training loop, and stops at a step's beginning (`benchmarks.harness.gate`)."""

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
"""Seconds that a process is given to end once nothing is asked of it any more."""
LOG_TAIL = 3000
"""Characters of a process's output that its failure is told with."""


class LoopFailed(Exception):
    """A training loop ended before it was asked to; its last words."""


@dataclass(frozen=True)
class Loop:
    """A training loop to start: `python -m module argument`, in an environment."""

    module: str
    argument: Path
    """A file that says what to train."""
    units: float
    """What a step counts for: its tokens, or texts."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to a user's shell."""


def as_it_comes(setting: Setting) -> dict[str, str]:
    """What a user of other libraries has set: nothing. Fewer threads than the machine has are asked for in their own way."""
    quiet = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}
    return quiet if setting.threads == hardware.cores() else quiet | {"OMP_NUM_THREADS": str(setting.threads)}


class Paced:
    """A loop's process. Raises LoopFailed wherever it ends by itself."""

    def __init__(self, loop: Loop, log: Path) -> None:
        self.loop, self.log, self.started_in = loop, log, 0.0
        self._begun = time.perf_counter()
        with log.open("w", encoding="utf-8") as output:
            self._process = subprocess.Popen(
                # unbuffered: what it prints and what it dies of come in the order in which they were said
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
        """Let it train for so many seconds, and so many steps, at least."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"seconds": seconds, "steps": steps}) + "\n")
            self._process.stdin.flush()
        reply = self._answer()
        return Turn(units=reply["steps"] * self.loop.units, seconds=reply["seconds"], cpu=reply["cpu"])

    def finish(self) -> None:
        """Let it train to its last step, and do what comes after that."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"seconds": 0, "steps": sys.maxsize}) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        if not reply or "ended" not in json.loads(reply) or self._process.wait() != 0:
            raise LoopFailed(self._words())

    def end(self) -> None:
        """Ask nothing more of it."""
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
        return f"{self.loop.module} {self.loop.argument.name} ended by itself:\n{words}"


@dataclass(frozen=True)
class Paces:
    """What loops that took turns have done."""

    turns: Turns
    failed: dict[str, str]
    """Why those are missing that would not run."""
    started_in: dict[str, float]
    """Seconds from the start of each process to its first step."""
    warming: dict[str, Turn]
    """The steps of each that came before its turns."""

    def notes(self, case: str = "") -> list[str]:
        """A sentence for each loop that would not run."""
        return [f"{case}{name} did not run: {why.strip().splitlines()[-1]}" for name, why in self.failed.items()]


def pace(
    loops: Mapping[str, Loop], folder: Path, *, rounds: int, seconds: float, warm: int = 3, steps: int = 1
) -> Paces:
    """Turns of all loops, after `warm` steps of each that do not count.

    One starts after the other, so that none compiles while another begins; what a loop needs memory for is held meanwhile.
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
