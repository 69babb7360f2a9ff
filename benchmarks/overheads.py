"""Overheads: checkpoints as a share of training, launcher and orchestration as a share of a five-minute stage."""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Any, ClassVar

import psutil

from benchmarks.checkouts import ROOT
from benchmarks.faults.attempt import Attempt
from benchmarks.faults.kinds.kills import TRAINING
from benchmarks.faults.regime import FIRST, MARK, RECIPE, Checkout, environment_of, regime
from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.record import Figure, Goal, Measured
from pipelines.lineage.provenance import RECORD, DataSource
from pipelines.lineage.results import METRICS, RESULT
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.load import Library
from pipelines.training.checkpoints.folder import Checkpoints
from pipelines.training.ranks.run import run
from tasks.launchers import ORDER
from tasks.launchers.environment import training_environment
from tests.small_corpus import write_tables
from tests.steps import job_of, plan_of

STAGE_SECONDS = 300
STEPS, EVERY = 60, 10
LONGER = "tokens: 4096000"
"""16,000 steps of the campaign's first stage: long enough to measure the cost per minute."""
SETTLING = 20.0
"""Seconds after the first steps that are excluded from the cost per minute: flow and server may still be starting."""
CHECKPOINTS, FIXED, BARE = (
    "checkpoints, of training time",
    "a run's start and end, once for all its stages",
    "start and end of the same stage as a bare script",
)
ADDED, BOTH = (
    "launcher and orchestration, of a five-minute stage",
    "start, end, flow and server, of a run that is one five-minute stage",
)


class Overheads(Benchmark):
    """Checkpoints: a stage of `regime` at its own size, with a checkpoint every few steps; the duration of one is
    divided by that of the steps between two checkpoints by default. Orchestration: the fault campaign's small recipe up
    to its first stage, with a temporary Prefect server as in `cursus run`. The seconds before the first optimizer step
    and after the last are spent once per run, whatever its number of stages; processor time of flow and server during
    training is taken from training when that uses all processors.

    A bare training script has start-up costs as well: importing torch, training a tokenizer, tokenising. Therefore the
    same job also runs as a script, `python -m pipelines.training.ranks.rank`, without a flow. The difference is the
    cost of launcher and orchestration: checking the data, Prefect, MLflow, the report.
    """

    name = "overheads"
    what = (
        "Checkpoints at the default interval as a share of training time; the additional time of `cursus run` over the "
        "bare training script before, during and after the training of a five-minute stage, and its whole overhead, as "
        "shares of that stage."
    )
    goals: ClassVar[tuple[Goal, ...]] = (
        Goal(figure=CHECKPOINTS, at_most=3, unit="%"),
        Goal(figure=ADDED, at_most=5, unit="%"),
    )

    def measure(self, setting: Setting) -> Measured:
        return Measured(figures=(*checkpointing(setting), *orchestration(setting)))


def checkpointing(setting: Setting) -> list[Figure]:
    """The share of training time that checkpoints take at the default interval, for the recipe's first stage."""
    job = _stage(setting)
    written, began = _timed(job)
    trained = time.monotonic() - began - sum(written)
    step, one, usual = trained / STEPS, median(written), Runtime().checkpoint_every
    return [
        Figure(name="an optimizer step of regime/general", value=1000 * step, unit="ms"),
        Figure(name=f"a checkpoint, one every {usual} steps", value=1000 * one, unit="ms"),
        Figure(name=CHECKPOINTS, value=100 * one / (one + usual * step), unit="%"),
    ]


def _stage(setting: Setting) -> Job:
    tables = write_tables(setting.folder("tables"))
    sources = {name: DataSource(digest=f"{n:032x}", path=str(path)) for n, (name, path) in enumerate(tables.items())}
    step = plan_of(Library(ROOT / "recipes"), "regime", sources).steps[0]
    runtime = Runtime(checkpoint_every=EVERY, threads=setting.threads)
    job = job_of(step, {}, tables, setting.work / "out", runtime)
    tokens = STEPS * job.stage.budget.batch_tokens
    budget = job.stage.budget.model_copy(update={"tokens": tokens})
    return job.model_copy(update={"stage": job.stage.model_copy(update={"budget": budget})})


def _timed(job: Job) -> tuple[list[float], float]:
    """Run a job; returns the seconds of each checkpoint, and the start time of the first step."""
    from pipelines.training.loop.module import StageModule

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


def orchestration(setting: Setting) -> list[Figure]:
    """Cost of a run apart from its training, and of the same training as a script."""
    with regime(setting.work / "regime") as prepared:
        checkout = prepared.checkout("measured", standing=False)
        recipe = checkout.folder / "recipes" / f"{RECIPE}.yaml"
        if not setting.quick:
            recipe.write_text(recipe.read_text().replace("tokens: 76800", LONGER))
        begun = time.monotonic()
        attempt = checkout.start("run", RECIPE, "--threads", "1", "--until", FIRST)
        assert attempt.watch(lambda: list(checkout.store.root.glob(f".work/*/{METRICS}"))), attempt.ended().output
        first, at_first = time.monotonic(), _cpu_outside_training(attempt)
        (order,) = checkout.store.root.glob(f".work/*/{ORDER}")
        job = Job.model_validate_json(order.read_bytes())
        settling = 0.0 if setting.quick else SETTLING
        assert attempt.watch(lambda: time.monotonic() > first + settling), attempt.ended().output
        settled, before = time.monotonic(), _cpu_outside_training(attempt)
        assert attempt.watch(lambda: list(checkout.store.root.glob(f"[0-9a-f]*/{RECORD}"))), attempt.ended().output
        last, after = time.monotonic(), _cpu_outside_training(attempt)
        ending = attempt.ended()
        assert ending.success, ending.output
        fixed = (first - begun) + (time.monotonic() - last)
        bare = _bare(job, checkout, setting)
    # in a short run, one-off costs would count as costs per minute
    assert setting.quick or last - settled > 2 * settling, (
        f"{last - settled:.0f} s of training are too short to measure"
    )
    a_second = (after - before) / (last - settled)
    once = max(0.0, before - at_first - a_second * (settled - first))
    alongside = (once + STAGE_SECONDS * a_second) / (psutil.cpu_count() or 1)
    return [
        Figure(name=FIXED, value=fixed, unit="s"),
        Figure(name=BARE, value=bare, unit="s"),
        Figure(name="flow and server once, while training begins", value=once, unit="s of a processor"),
        Figure(name="flow and server beside a minute of training", value=60 * a_second, unit="s of a processor"),
        Figure(name=ADDED, value=100 * (fixed - bare + alongside) / STAGE_SECONDS, unit="%"),
        Figure(name=BOTH, value=100 * (fixed + alongside) / STAGE_SECONDS, unit="%"),
    ]


def _bare(job: Job, checkout: Checkout, setting: Setting) -> float:
    """Seconds before the first optimizer step and after the last of `job` as a script, in separate folders."""
    folder = setting.folder("bare")
    job = job.model_copy(update={"out": folder / "out", "cache": folder / "tokens"})
    order = job.out / ORDER
    order.parent.mkdir(parents=True)
    order.write_text(job.model_dump_json(), encoding="utf-8")
    begun = time.monotonic()
    script = Attempt(
        [sys.executable, "-m", "pipelines.training.ranks.rank", str(order)], checkout.folder,
        {**environment_of(checkout.folder), **training_environment()}, (MARK, str(checkout.folder)),
        setting.work / "bare.txt",
    )  # fmt: skip
    assert script.watch((job.out / METRICS).exists), script.ended().output
    first = time.monotonic()
    assert script.watch((job.out / RESULT).exists), script.ended().output
    last = time.monotonic()
    ending = script.ended()
    assert ending.success, ending.output
    return (first - begun) + (time.monotonic() - last)


def _cpu_outside_training(attempt: Attempt) -> float:
    """Seconds of processor time of all processes except those that train."""
    training = {process.pid for process in attempt.find(TRAINING)}
    times = [process.cpu_times() for process in attempt.processes() if process.pid not in training]
    return sum(one.user + one.system for one in times)
