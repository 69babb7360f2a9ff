"""Estimates of how long steps will take, with their uncertainty.

    work of a step ──▶ seconds on a reference machine ──▶ seconds on this machine, scaled by its measured speed
                                   └──▶ corrected by the durations of similar steps in this store

The costs of each kind of work are processor seconds of this repository's recipes on a core of an Intel Xeon with AMX.
Records of this machine in the store correct them: a record of the same step has a large weight, one of another size a
smaller one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from pipelines.lineage import hardware
from pipelines.lineage.provenance import Provenance
from pipelines.messages.translation import message
from pipelines.recipe.plan import Plan, Step
from tasks.estimates.machine_speed import slowness
from tasks.estimates.work import KnownStep, TableSize, Work, backbone_description, tables_of, work_of
from tasks.launchers.settings import load_training

if TYPE_CHECKING:
    from tasks.datasets.prepared import Prepared

RUN_SECONDS = 12.0
"""Start and end of a run: the flow, Prefect's server, MLflow, the report."""
WORKER_SECONDS = 6.0
"""Imports of a training process. Those of the first process overlap with the start of the flow."""
STEP_SECONDS = 0.55
STEP_OF_OPTIMIZER, LAYER_OF_STEP = 0.0019, 0.001
CHARACTER_SECONDS, LEARNT_SECONDS, PASSED_SECONDS = 1.6e-7, 0.6e-6, 3.0e-6
ANSWER_SECONDS, LAYER_OF_ANSWER, WRITTEN_SECONDS = 1.9e-4, 1.2e-4, 1.0e-5
MODEL_SECONDS, ANALYSIS_SECONDS, CONVERSION_SECONDS = 0.42, 2.3, 5.0
OPERATIONS = {"amx_bf16": 2.2e11, "avx512_bf16": 1.1e11, "": 0.42e11}
"""Operations per second of one core on small networks, by processor extension; the first that is present applies."""
SCORING = 0.8
"""Rate of scoring a vocabulary, relative to that of the other operations."""
THREADS_GAIN = 0.75
"""Speed-up of each further thread, relative to the first."""
HISTORY = 400
"""Number of records that are used, the newest ones."""
SIMILARITY = {"same": 16.0, "stage": 4.0, "backbone": 0.5, "kind": 0.1, "any": 0.03}
"""Weight of a record: of the same stage up to seed, budget and data; of a stage with the same name; of the same kind
and backbone; of the same kind; of any stage."""
REFERENCE_WEIGHT = 0.5
"""Weight of the reference machine, relative to records."""
TIMES_LARGER = math.log(4)
"""Log ratio of computing times at which a record's weight is halved; beyond it the weight falls quickly, because the
duration of a smoke run is mostly its start-up."""
SHORT = 0.2
"""Seconds of computing below which all steps count as equal, for example a step that does not compute at all."""
UNSURE, SURE = math.log(2.0), math.log(1.15)
"""Log of the factor by which an estimate may be off: without any record, and with the best."""
_RECORDED: dict[str, KnownStep] = {}
"""Fingerprint → the step of its record, which never changes: a campaign estimates hundreds of plans."""


@dataclass(frozen=True)
class TimeEstimate:
    """The estimate_plan duration of a step."""

    tokens: int
    seconds: float
    off_by: float
    """Uncertainty factor: the duration is usually between `seconds / off_by` and `seconds * off_by`."""
    seen: int
    """Number of records of similar steps that the estimate is based on."""


@dataclass(frozen=True)
class RunEstimate:
    """The estimate_plan duration of a run, with steps in parallel where the run would compute them in parallel."""

    steps: Mapping[str, TimeEstimate]
    """Estimates by fingerprint."""
    seconds: float
    off_by: float

    @property
    def text(self) -> str:
        """The duration and its range as text."""
        low, high = self.seconds / self.off_by, self.seconds * self.off_by
        if self.seconds < 100:
            return message("about {mean:.0f} seconds ({low:.0f} to {high:.0f})", mean=self.seconds, low=low, high=high)
        return message(
            "about {mean:.0f} minutes ({low:.0f} to {high:.0f})", mean=self.seconds / 60, low=low / 60, high=high / 60
        )


def estimate_run(
    root: Path, plan: Plan, prepared: Prepared, stored: set[str], records: Sequence[Provenance], threads: int | None
) -> RunEstimate:
    """TimeEstimate a run that computes the steps of `plan` that are not in `stored`, on `threads` cores (None: all of
    them).

    `records` are those of the store.
    """
    cores = threads or hardware.cores()
    return estimate_plan(plan, stored, records, tables_of(prepared), cores, load_training(root).concurrent_jobs(cores))


def estimate_plan(
    plan: Plan,
    stored: set[str],
    records: Sequence[Provenance],
    tables: Mapping[str, TableSize],
    cores: int,
    concurrent_jobs: int,
) -> RunEstimate:
    """TimeEstimate a run with `concurrent_jobs` steps in parallel; `tables` are the dataset's sizes, by name and by
    digest."""
    known = {step.fingerprint: KnownStep.planned(step) for step in plan.steps}
    history = _history(records, known, tables)

    @cache
    def estimate(fingerprint: str, threads: int) -> TimeEstimate:
        return _estimate(known[fingerprint], known, history, tables, threads)

    todo = plan.missing(stored)
    each = {step.fingerprint: estimate(step.fingerprint, cores) for step in plan.steps}
    if not todo:
        return RunEstimate(each, 0.0, 1.0)
    duration, computed = _schedule(todo, stored, estimate, cores, concurrent_jobs)
    each |= computed
    total = sum(one.seconds for one in computed.values())
    uncertainty = sum(one.seconds * math.log(one.off_by) for one in computed.values()) / total
    return RunEstimate(each, RUN_SECONDS * slowness() + duration, math.exp(uncertainty))


@dataclass(frozen=True)
class _Measured:
    """Recorded steps of this machine that are equal up to their seeds."""

    known: KnownStep
    backbone: str
    computing: float
    """Median computing time, without start-up, that this module predicts, in seconds."""
    ratio: float
    """Median log ratio of recorded to predicted duration."""
    count: int


def _history(
    records: Sequence[Provenance], planned: Mapping[str, KnownStep], tables: Mapping[str, TableSize]
) -> list[_Measured]:
    """Recorded steps that were computed on this kind of device, without resumption from a checkpoint."""
    here = hardware.device_name(hardware.accelerator())
    newest = sorted(records, key=lambda record: record.environment.started)[-HISTORY:]
    known = dict(planned)
    for record in newest:
        try:
            if record.fingerprint not in _RECORDED:
                _RECORDED[record.fingerprint] = KnownStep.recorded(record)
            known[record.fingerprint] = _RECORDED[record.fingerprint]
        except ValueError:  # a record of an earlier version, or with a component that is not installed
            continue
    groups: dict[tuple[str, ...], list[tuple[KnownStep, float, float]]] = defaultdict(list)
    """Each step with its predicted computing time and the log ratio of recorded to predicted duration."""
    for record in newest:
        environment = record.environment
        if record.fingerprint not in known or environment.device != here or environment.resumed_from_step:
            continue
        one = known[record.fingerprint]
        threads = int(environment.runtime.get("threads", 1))
        work = work_of(one, known, tables)
        ratio = math.log(max(environment.seconds, 0.05) / _seconds(work, threads))
        group_key = (one.recipe, one.name, one.stage.model_dump_json(), str(threads))
        groups[group_key].append((one, _computing(work, threads), ratio))
    return [
        _Measured(
            group[0][0],
            backbone_description(group[0][0], known),
            median(computing for _, computing, _ in group),
            median(ratio for *_, ratio in group),
            len(group),
        )
        for group in groups.values()
    ]


def _estimate(
    one: KnownStep,
    known: Mapping[str, KnownStep],
    history: Sequence[_Measured],
    tables: Mapping[str, TableSize],
    threads: int,
) -> TimeEstimate:
    work, backbone = work_of(one, known, tables), backbone_description(one, known)
    predicted, computing = _seconds(work, threads), _computing(work, threads)
    similar = [(_similarity(one, backbone, record), record) for record in history]
    weighted = [
        (similarity / (1 + _larger(record.computing, computing) ** 4), record) for similarity, record in similar
    ]
    # the reference machine, scaled by this machine's measured speed, counts as one record
    total, mean = REFERENCE_WEIGHT, REFERENCE_WEIGHT * math.log(slowness())
    for weight, record in weighted:
        total, mean = total + weight, mean + weight * record.ratio
    mean /= total
    variance = REFERENCE_WEIGHT * UNSURE**2 + sum(
        weight * (SURE**2 + (record.ratio - mean) ** 2) for weight, record in weighted
    )
    count = sum(record.count for similarity, record in similar if similarity >= SIMILARITY["stage"])
    return TimeEstimate(work.tokens, predicted * math.exp(mean), math.exp(math.sqrt(variance / total)), count)


def _similarity(one: KnownStep, backbone: str, record: _Measured) -> float:
    other = record.known
    if one.name == other.name and one.recipe == other.recipe:
        excluded = {"budget", "seeds", "start", "teacher", "limits", "like"}
        this, that = (known.stage.model_dump(exclude=excluded) for known in (one, other))
        return SIMILARITY["same" if this == that else "stage"]
    if one.stage.kind != other.stage.kind:
        return SIMILARITY["any"]
    return SIMILARITY["backbone" if backbone == record.backbone else "kind"]


def _larger(one: float, other: float) -> float:
    """Log ratio of two computing times, in units of `TIMES_LARGER`."""
    return math.log(max(one, SHORT) / max(other, SHORT)) / TIMES_LARGER


def _seconds(work: Work, threads: int) -> float:
    """Duration on the reference machine."""
    started = (
        STEP_SECONDS
        + work.models * MODEL_SECONDS
        + work.analyses * ANALYSIS_SECONDS
        + work.conversions * CONVERSION_SECONDS
    )
    return started + _computing(work, threads)


def _computing(work: Work, threads: int) -> float:
    """Duration on the reference machine without start-up: the part that grows with the work."""
    rate = next(rate for name, rate in OPERATIONS.items() if not name or name in hardware.extensions())
    return (
        work.steps * (STEP_OF_OPTIMIZER + LAYER_OF_STEP * work.layers)
        + (work.operations + work.scoring / SCORING) / rate / (1 + THREADS_GAIN * (threads - 1))
        + work.characters * CHARACTER_SECONDS
        + work.learnt * LEARNT_SECONDS
        + work.passed * PASSED_SECONDS
        + work.answers * (ANSWER_SECONDS + LAYER_OF_ANSWER * work.layers)
        + work.written * WRITTEN_SECONDS
    )


def _schedule(
    todo: Sequence[Step],
    stored: set[str],
    estimate: Callable[[str, int], TimeEstimate],
    cores: int,
    concurrent_jobs: int,
) -> tuple[float, dict[str, TimeEstimate]]:
    """Simulate the schedule of `flows.process.computing`: seconds until all steps are computed, and the estimate of
    each step on its share of the processors. A step begins when its parents are done and one of `concurrent_jobs` slots
    is free."""
    done = dict.fromkeys(stored, 0.0)
    slots = [0.0] + [-1.0] * (concurrent_jobs - 1)
    """When each slot becomes free; negative: its process has not been started yet."""
    waiting, now, computed = list(todo), 0.0, dict[str, TimeEstimate]()
    while waiting:
        ready = [one for one in waiting if all(done.get(parent, math.inf) <= now for parent in one.parents.values())]
        running = sum(until > now for until in slots)
        threads = max(1, cores // min(concurrent_jobs, running + len(ready))) if ready else 1
        for step in ready[: concurrent_jobs - running]:
            free = [slot for slot, until in enumerate(slots) if until <= now]
            started = [slot for slot in free if slots[slot] >= 0]
            slot = (started or free)[0]
            begins = now + (0.0 if started else WORKER_SECONDS * slowness())
            computed[step.fingerprint] = estimate(step.fingerprint, threads)
            slots[slot] = done[step.fingerprint] = begins + computed[step.fingerprint].seconds
            waiting.remove(step)
        now = min((until for until in slots if until > now), default=now)
    return max(done.values()), computed
