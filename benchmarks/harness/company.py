"""The machine, and its other load during a measurement."""

from __future__ import annotations

import os
import platform
import subprocess
import threading
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Self

import psutil

from benchmarks.checkouts import ROOT
from benchmarks.harness.record import Company, Machine
from pipelines.lineage import hardware

MARK = "BENCHMARK_RUN"
"""Environment variable that all processes of a benchmark inherit; `users_shell` does not remove it."""
SAMPLED_EVERY = 2.0
"""Seconds between two samples of the other processes: a sample takes some milliseconds."""
WRITTEN = ("benchmarks/records", "docs/performance.md", "docs/reliability", "docs/reliability.md")
"""Files that a measurement writes: their changes do not mark the commit as modified."""
PACKAGES = (
    "torch", "transformers", "pytorch-lightning", "tokenizers", "accelerate", "datasets", "datasketch", "gensim",
    "numpy", "pyarrow",
    "prefect", "mlflow", "dvc", "onnxruntime", "openvino",
)  # fmt: skip


def machine() -> Machine:
    """This machine."""
    memory = psutil.virtual_memory().total / 2**30
    return Machine(
        processor=hardware.device_name("cpu"),
        cores=hardware.cores(),
        memory_gib=round(memory, 1),
        platform=platform.platform(),
    )


def versions() -> dict[str, str]:
    """Versions of Python and of the installed packages in `PACKAGES`."""
    known = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            known[name] = version(name)
    return known


def commit() -> str:
    """The measured commit, with a + if tracked files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", *(f":!{name}" for name in WRITTEN))
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if changed else "")


class Watch:
    """Samples the processor time of other processes while it is entered. Processes with MARK=`run` in their environment
    are ours."""

    def __init__(self, run: str) -> None:
        self.run = run
        self._load = os.getloadavg()[0]
        self._others = self._stolen = self._all = 0.0
        self._ours: dict[tuple[int, float], bool] = {}
        self._used: dict[tuple[int, float], float] = {}
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._before = psutil.cpu_times()
        self._sample(counts=False)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._thread.join()
        self._sample()
        before, now = self._before, psutil.cpu_times()
        self._all = sum(now) - sum(before)
        self._stolen = getattr(now, "steal", 0.0) - getattr(before, "steal", 0.0)

    def company(self) -> Company:
        """The sampled load."""
        whole = max(self._all, 1e-9)
        return Company(
            load_before=round(self._load, 2),
            others=round(self._others / whole, 4),
            stolen=round(self._stolen / whole, 4),
        )

    def ours(self, process: psutil.Process) -> bool:
        """Whether a process is this one, or was started for the measurement."""
        return process.pid == os.getpid() or process.environ().get(MARK) == self.run

    def _look(self) -> None:
        while not self._left.wait(SAMPLED_EVERY):
            self._sample()

    def _sample(self, counts: bool = True) -> None:
        used = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                known = (process.pid, process.create_time())
                if known not in self._ours:
                    if not process.environ():
                        continue  # it has just started, or is a kernel thread
                    self._ours[known] = self.ours(process)
                if not self._ours[known]:
                    times = process.cpu_times()
                    used[known] = times.user + times.system
        if counts:  # processes that start and end between two samples are missed
            self._others += sum(max(0.0, value - self._used.get(known, 0.0)) for known, value in used.items())
        self._used = used
