"""How long steps will take, told before they run, and how sure that is.

    what is counted of a step ──▶ seconds on a reference machine ──▶ on this one, as fast as it computes
                                                └──▶ corrected by what steps like it took in this store

The seconds of each kind of work are processor seconds of this repository's recipes on a core of an Intel Xeon with AMX. A store
that has seen this machine corrects them: a step that was computed before is taken at its word, one of another size less.
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
from pipelines.recipe.plan import Plan, Step
from tasks.estimates.machine_speed import slowness
from tasks.estimates.work import Known, Table, Work, body_described, tables_of, work_of
from tasks.launchers.settings import load_training

if TYPE_CHECKING:
    from tasks.datasets.prepared import Prepared

RUN_SECONDS = 12.0
"""A run's start and end: the flow, Prefect's server, MLflow, the report."""
WORKER_SECONDS = 6.0
"""A training process's imports. The first one's lie under the start of the flow."""
STEP_SECONDS = 0.55
STEP_OF_OPTIMIZER, LAYER_OF_STEP = 0.0019, 0.001
CHARACTER_SECONDS, LEARNT_SECONDS = 1.6e-7, 0.6e-6
ANSWER_SECONDS, LAYER_OF_ANSWER, WRITTEN_SECONDS = 1.9e-4, 1.2e-4, 1.0e-5
MODEL_SECONDS, ANALYSIS_SECONDS, CONVERSION_SECONDS = 0.42, 2.3, 5.0
OPERATIONS = {"amx_bf16": 2.2e11, "avx512_bf16": 1.1e11, "": 0.42e11}
"""Extension of the processor → operations a second of one processor on small networks; the first that it has."""
SCORING = 0.8
"""That of scoring a vocabulary, as a share of it."""
THREADS_GAIN = 0.75
"""What a further thread adds, in threads."""
HISTORY = 400
"""Records that are looked at, the newest."""
LIKENESS = {"same": 16.0, "stage": 4.0, "body": 0.5, "kind": 0.1, "any": 0.03}
"""How much a record counts: of the same stage in all but seed, budget and data; of a stage of that name; of that kind and on such
a body; of that kind."""
UNSEEN = 0.5
"""How much the reference machine counts beside records."""
TIMES_LARGER = math.log(4)
"""A record of a step that computes so much longer or shorter counts half, and soon nothing: what a smoke run takes is its start."""
SHORT = 0.2
"""Seconds of computing, beside which what is shorter is alike: a step that does not compute at all, say."""
UNSURE, SURE = math.log(2.0), math.log(1.15)
"""Logarithm of the factor that an estimate may be off by: without any record, and with the best."""


@dataclass(frozen=True)
class Estimate:
    """A guess."""

    tokens: int
    seconds: float
    off_by: float
    """A factor: between `seconds` divided by it and `seconds` times it, usually."""
    seen: int
    """Records of steps like it that it is from."""


@dataclass(frozen=True)
class RunEstimate:
    """A guess for all that is to be computed, steps side by side where the run would compute them so."""

    steps: Mapping[str, Estimate]
    """By fingerprint."""
    seconds: float
    off_by: float

    @property
    def said(self) -> str:
        """In words."""
        low, high = self.seconds / self.off_by, self.seconds * self.off_by
        unit, size = ("seconds", 1) if self.seconds < 100 else ("minutes", 60)
        return f"about {self.seconds / size:.0f} {unit} ({low / size:.0f} to {high / size:.0f})"


def estimates(
    root: Path, plan: Plan, prepared: Prepared, stored: set[str], records: Sequence[Provenance], threads: int | None
) -> RunEstimate:
    """What a run would take that computes all of `plan` that is not in `stored`, on `threads` cores or all of them. `records`
    are those of the store."""
    cores = threads or hardware.cores()
    return estimated(plan, stored, records, tables_of(prepared), cores, load_training(root).concurrent_jobs(cores))


def estimated(
    plan: Plan,
    stored: set[str],
    records: Sequence[Provenance],
    tables: Mapping[str, Table],
    cores: int,
    concurrent_jobs: int,
) -> RunEstimate:
    """The same, `concurrent_jobs` steps at a time; `tables` are the sizes of the dataset's, by name and by digest."""
    known = {step.fingerprint: Known.planned(step) for step in plan.steps}
    history = _history(records, known, tables)

    @cache
    def guess(fingerprint: str, threads: int) -> Estimate:
        return _estimate(known[fingerprint], known, history, tables, threads)

    todo = plan.missing(stored)
    each = {step.fingerprint: guess(step.fingerprint, cores) for step in plan.steps}
    if not todo:
        return RunEstimate(each, 0.0, 1.0)
    lasting, computed = _side_by_side(todo, stored, guess, cores, concurrent_jobs)
    each |= computed
    whole = sum(one.seconds for one in computed.values())
    unsure = sum(one.seconds * math.log(one.off_by) for one in computed.values()) / whole
    return RunEstimate(each, RUN_SECONDS * slowness() + lasting, math.exp(unsure))


@dataclass(frozen=True)
class _Seen:
    """Steps that were computed here, alike in all but their seeds."""

    known: Known
    body: str
    computing: float
    """Seconds of it beyond its start that this module would have said."""
    ratio: float
    """Logarithm of what it took beyond that: of the middle one."""
    count: int


def _history(records: Sequence[Provenance], planned: Mapping[str, Known], tables: Mapping[str, Table]) -> list[_Seen]:
    """What was computed on a processor like this one, from its beginning."""
    here = hardware.described(hardware.accelerator())
    newest = sorted(records, key=lambda record: record.environment.started)[-HISTORY:]
    known = dict(planned)
    for record in newest:
        try:
            known[record.fingerprint] = Known.recorded(record)
        except ValueError:  # an earlier version's, or with a part that is not here
            continue
    groups: dict[tuple[str, ...], list[tuple[Known, float, float]]] = defaultdict(list)
    """Of each its computing, and the logarithm of its ratio."""
    for record in newest:
        environment = record.environment
        if record.fingerprint not in known or environment.device != here or environment.resumed_from_step:
            continue
        one = known[record.fingerprint]
        threads = int(environment.runtime.get("threads", 1))
        work = work_of(one, known, tables)
        ratio = math.log(max(environment.seconds, 0.05) / _seconds(work, threads))
        alike = (one.recipe, one.name, one.stage.model_dump_json(), str(threads))
        groups[alike].append((one, _computing(work, threads), ratio))
    return [
        _Seen(
            group[0][0],
            body_described(group[0][0], known),
            median(computing for _, computing, _ in group),
            median(ratio for *_, ratio in group),
            len(group),
        )
        for group in groups.values()
    ]


def _estimate(
    one: Known, known: Mapping[str, Known], history: Sequence[_Seen], tables: Mapping[str, Table], threads: int
) -> Estimate:
    work, body = work_of(one, known, tables), body_described(one, known)
    here, computing = _seconds(work, threads), _computing(work, threads)
    alike = [(_likeness(one, body, seen), seen) for seen in history]
    weighed = [(likeness / (1 + _larger(seen.computing, computing) ** 4), seen) for likeness, seen in alike]
    # the reference machine's word, as fast as this one computes
    total, mean = UNSEEN, UNSEEN * math.log(slowness())
    for weight, seen in weighed:
        total, mean = total + weight, mean + weight * seen.ratio
    mean /= total
    spread = UNSEEN * UNSURE**2 + sum(weight * (SURE**2 + (seen.ratio - mean) ** 2) for weight, seen in weighed)
    like = sum(seen.count for likeness, seen in alike if likeness >= LIKENESS["stage"])
    return Estimate(work.tokens, here * math.exp(mean), math.exp(math.sqrt(spread / total)), like)


def _likeness(one: Known, body: str, seen: _Seen) -> float:
    other = seen.known
    if one.name == other.name and one.recipe == other.recipe:
        left_out = {"budget", "seeds", "start", "teacher", "limits", "like"}
        mine, its = (known.stage.model_dump(exclude=left_out) for known in (one, other))
        return LIKENESS["same" if mine == its else "stage"]
    if one.stage.kind != other.stage.kind:
        return LIKENESS["any"]
    return LIKENESS["body" if body == seen.body else "kind"]


def _larger(one: float, other: float) -> float:
    """How much longer one computes than the other, in `TIMES_LARGER`."""
    return math.log(max(one, SHORT) / max(other, SHORT)) / TIMES_LARGER


def _seconds(work: Work, threads: int) -> float:
    """On the reference machine."""
    started = (
        STEP_SECONDS
        + work.models * MODEL_SECONDS
        + work.analyses * ANALYSIS_SECONDS
        + work.conversions * CONVERSION_SECONDS
    )
    return started + _computing(work, threads)


def _computing(work: Work, threads: int) -> float:
    """Those that grow with what is to be computed."""
    rate = next(rate for name, rate in OPERATIONS.items() if not name or name in hardware.extensions())
    return (
        work.steps * (STEP_OF_OPTIMIZER + LAYER_OF_STEP * work.layers)
        + (work.operations + work.scoring / SCORING) / rate / (1 + THREADS_GAIN * (threads - 1))
        + work.characters * CHARACTER_SECONDS
        + work.learnt * LEARNT_SECONDS
        + work.answers * (ANSWER_SECONDS + LAYER_OF_ANSWER * work.layers)
        + work.written * WRITTEN_SECONDS
    )


def _side_by_side(
    todo: Sequence[Step], stored: set[str], guess: Callable[[str, int], Estimate], cores: int, concurrent_jobs: int
) -> tuple[float, dict[str, Estimate]]:
    """Seconds until all steps are computed, and what each takes on the processors it has, as `flows.process.computing` deals them out:
    a step begins when its parents are there and one of `concurrent_jobs` places is free."""
    done = dict.fromkeys(stored, 0.0)
    places = [0.0] + [-1.0] * (concurrent_jobs - 1)
    """When each place is free again; below 0, its process is yet to be started."""
    waiting, now, found = list(todo), 0.0, dict[str, Estimate]()
    while waiting:
        ready = [one for one in waiting if all(done.get(parent, math.inf) <= now for parent in one.parents.values())]
        running = sum(until > now for until in places)
        threads = max(1, cores // min(concurrent_jobs, running + len(ready))) if ready else 1
        for step in ready[: concurrent_jobs - running]:
            free = [place for place, until in enumerate(places) if until <= now]
            started = [place for place in free if places[place] >= 0]
            place = (started or free)[0]
            begins = now + (0.0 if started else WORKER_SECONDS * slowness())
            found[step.fingerprint] = guess(step.fingerprint, threads)
            places[place] = done[step.fingerprint] = begins + found[step.fingerprint].seconds
            waiting.remove(step)
        now = min((until for until in places if until > now), default=now)
    return max(done.values()), found
