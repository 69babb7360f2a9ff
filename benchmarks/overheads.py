"""What safety and order cost: checkpoints as a share of training, launcher and orchestration as a share of a five-minute stage.

    python -m benchmarks.overheads                 two to four minutes on a free machine

Checkpoints: a stage of `bert` at its own size, with a checkpoint every few steps; what one takes, over the steps that lie
between two by default. Orchestration: the campaign's small regime up to its first stage, with a Prefect server of its own as
`cursus run` has one. Its seconds before the first optimizer step and after the last are paid once a run, by however many
stages it has; what flow and server use while training goes on is taken from training where it has all processors.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.__main__ import ROOT, Figure
from benchmarks.faults.attempt import Attempt
from benchmarks.faults.kinds.kills import TRAINING
from benchmarks.faults.regime import FIRST, RECIPE, regime
from pipelines.job import METRICS, Job, Runtime
from pipelines.lineage.provenance import RECORD, DataSource
from pipelines.recipe.load import Library
from pipelines.training.checkpoints import Checkpoints
from pipelines.training.run import run
from tests.small_corpus import write_tables
from tests.steps import job_of, plan_of

STAGE_SECONDS = 300
STEPS, EVERY = 60, 10
LONGER = "tokens: 512000"
"""2,000 steps of the campaign's first stage: long enough to see what a minute of it costs."""


def main() -> int:
    for figure in (*checkpointing(), *orchestration()):
        print(f"{figure.name:<56} {figure.measured:<34} {figure.goal}", flush=True)
    return 0


def checkpointing() -> list[Figure]:
    """The share of training that checkpoints take at the default cadence, of the recipe's first stage."""
    with tempfile.TemporaryDirectory() as folder:
        job = _stage(Path(folder))
        written, began = _timed(job)
        trained = time.monotonic() - began - sum(written)
    step, one, usual = trained / STEPS, median(written), Runtime().checkpoint_every
    share = one / (one + usual * step)
    return [
        Figure("an optimizer step of bert/general", f"{1000 * step:.0f} ms", ""),
        Figure(f"a checkpoint, one every {usual} steps", f"{1000 * one:.0f} ms", ""),
        Figure("checkpoints, of training time", f"{share:.2%}", "< 3 %"),
    ]


def _stage(folder: Path) -> Job:
    (folder / "tables").mkdir()
    tables = write_tables(folder / "tables")
    sources = {name: DataSource(digest=f"{n:032x}", path=str(path)) for n, (name, path) in enumerate(tables.items())}
    step = plan_of(Library(ROOT / "recipes"), "bert", sources).steps[0]
    job = job_of(step, {}, tables, folder / "out", Runtime(checkpoint_every=EVERY, threads=psutil.cpu_count() or 1))
    tokens = STEPS * job.stage.budget.batch_tokens
    budget = job.stage.budget.model_copy(update={"tokens": tokens})
    return job.model_copy(update={"stage": job.stage.model_copy(update={"budget": budget})})


def _timed(job: Job) -> tuple[list[float], float]:
    """Run a job: the seconds of each checkpoint, and the moment at which the first step began."""
    from pipelines.training.module import StageModule

    write, start, written, began = Checkpoints.write, StageModule.on_fit_start, list[float](), list[float]()

    def timed(self: Checkpoints, trainer: Any) -> None:
        before = time.monotonic()
        write(self, trainer)
        written.append(time.monotonic() - before)

    def started(self: StageModule) -> None:
        start(self)
        began.append(time.monotonic())

    Checkpoints.write, StageModule.on_fit_start = timed, started  # type: ignore[method-assign]
    try:
        run(job)
    finally:
        Checkpoints.write, StageModule.on_fit_start = write, start  # type: ignore[method-assign]
    return written, began[0]


def orchestration() -> list[Figure]:
    """What a run costs beside its training."""
    with regime(Path(tempfile.gettempdir()) / "cursus-overheads") as prepared:
        checkout = prepared.checkout("measured", standing=False)
        recipe = checkout.folder / "recipes" / f"{RECIPE}.yaml"
        recipe.write_text(recipe.read_text().replace("tokens: 76800", LONGER))
        begun = time.monotonic()
        attempt = checkout.start("run", RECIPE, "--threads", "1", "--until", FIRST)
        assert attempt.watch(lambda: list(checkout.store.root.glob(f".work/*/{METRICS}"))), attempt.ended().said
        first, before = time.monotonic(), _beside_training(attempt)
        assert attempt.watch(lambda: list(checkout.store.root.glob(f"[0-9a-f]*/{RECORD}"))), attempt.ended().said
        last, after = time.monotonic(), _beside_training(attempt)
        ending = attempt.ended()
        assert ending.success, ending.said
        ended = time.monotonic()
    fixed, minutes = (first - begun) + (ended - last), (last - first) / 60
    a_minute = (after - before) / minutes
    cores = psutil.cpu_count() or 1
    share = (fixed + STAGE_SECONDS / 60 * a_minute / cores) / STAGE_SECONDS
    return [
        Figure("a run's start and end, once for all its stages", f"{fixed:.1f} s", ""),
        Figure("flow and server beside a minute of training", f"{a_minute:.1f} s of a processor", ""),
        Figure("both, of a run that is one five-minute stage", f"{share:.2%}", "< 5 %"),
    ]


def _beside_training(attempt: Attempt) -> float:
    """Seconds of processor time of all processes but those that train."""
    training = {process.pid for process in attempt.find(TRAINING)}
    times = [process.cpu_times() for process in attempt.processes() if process.pid not in training]
    return sum(one.user + one.system for one in times)


if __name__ == "__main__":
    sys.exit(main())
