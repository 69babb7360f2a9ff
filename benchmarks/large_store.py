"""Duration of lookups in a store of ten thousand stages, and in a run with a hundred thousand metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.checkouts import ROOT
from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.record import Figure, Goal, Measured
from benchmarks.harness.turns import median
from pipelines.lineage.provenance import DataSource, Environment, Provenance
from pipelines.lineage.results import METRICS, Result
from pipelines.lineage.store import Store
from pipelines.recipe.job import Job
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan

STAGES, METRIC_LINES = 10_000, 100_000
CHAIN = 8
"""Length of the chains of stages, each of which starts from the previous one, as in a recipe."""
AT_MOST = 0.2
LOOKUPS = (
    "store get",
    "store find",
    "store claim",
    "planning regime",
    "cursus lineage",
    "a report's records",
    "what MLflow misses, by name",
    "what MLflow tells of",
    "a run's news",
    "a run's last steps in MLflow",
    "twenty more points in MLflow",
)
LISTING = "all records of the store"
KEYS = 10
"""Number of metrics of a run with many points."""


class LargeStore(Benchmark):
    name = "large_store"
    what = (
        "Lookups of everyday commands, in a store of 10,000 published stages and in a run of 100,000 metrics: an "
        "artifact by fingerprint and by prefix, the claim to compute one, a plan, a lineage, the records of a report, "
        "the stages recorded in MLflow, new metrics of a run, the last points of its curves in MLflow, and adding "
        "points to them."
    )
    goals: ClassVar[tuple[Goal, ...]] = tuple(Goal(figure=name, at_most=AT_MOST, unit="s") for name in LOOKUPS)

    def measure(self, setting: Setting) -> Measured:
        count = 200 if setting.quick else STAGES
        store = Store(setting.folder("store"))
        begun = time.perf_counter()
        names = fill(store, count)
        a_stage = (time.perf_counter() - begun) / count
        lines = 2000 if setting.quick else METRIC_LINES
        looks = {
            **lookups(store, names),
            "a run's news": news(setting.folder("run"), lines),
            **tracked(setting.folder("tracked"), lines, names),
        }
        rounds = 2 if setting.quick else 7
        took = {name: [timed(look) for _ in range(rounds)] for name, look in looks.items()}
        figures = [median(name, taken, "s") for name, taken in took.items()]
        listing = median(
            LISTING, [timed(lambda: sum(1 for _ in store.all())) for _ in range(1 if setting.quick else 3)], "s"
        )
        published = Figure(name="publishing a stage, while the store grows", value=1000 * a_stage, unit="ms")
        note = f"{LISTING} is read by `cursus store verify` and by a dry run's estimate"
        return Measured(figures=(*figures, listing, published), notes=(note,))


def fill(store: Store, count: int) -> list[str]:
    """Publish `count` small stages, each with a record as long as a real one; returns their fingerprints."""
    stage = Library(ROOT / "recipes").load("regime").stages["general"].model_dump(mode="json")
    environment = Environment(
        python="3", platform="", packages={f"package-{n}": "1.0.0" for n in range(12)}, commit=None,
        started="2026-01-01T00:00:00+00:00", seconds=60.0,
    )  # fmt: skip
    names: list[str] = []
    for number in range(count):
        name = sha256(str(number).encode()).hexdigest()
        parents = {"start": names[-1]} if number % CHAIN else {}
        started = f"2026-01-01T{number // 60 % 24:02}:{number % 60:02}:00+00:00"
        (store.workspace(name) / "config.json").write_text("{}", encoding="utf-8")
        record = Provenance(
            fingerprint=name, recipe="regime", stage="general", kind="pretrain", seed=0, identity={"stage": stage},
            parents=parents,
            data={"general": DataSource(digest=f"{number:032x}", path="data/prepared/docs/general")}, files={},
            result={"metrics": {"train/loss": 4.2}, "tokens": 3_000_000, "steps": 732},
            environment=environment.model_copy(update={"started": started}),
        )  # fmt: skip
        store.publish(record)
        names.append(name)
    return names


def lookups(store: Store, names: list[str]) -> dict[str, Callable[[], Any]]:
    """Lookups in a store, by name."""
    from tasks.models.ancestry import ancestry, lineage
    from tasks.records.reports import provenance_records

    library = Library(ROOT / "recipes")
    recipe = library.load("regime")
    sources = {
        name: DataSource(digest=f"{n:032x}", path=name)
        for n, name in enumerate(("general", "domain", "task_text", "train", "validation", "test"))
    }
    numbers = iter(range(CHAIN - 1, len(names) * 1000, 7 * CHAIN))

    def one() -> str:
        return names[next(numbers) % len(names)]

    def claimed() -> None:
        lock = store.claim(sha256(one().encode()).hexdigest())
        assert lock is not None
        lock.release()

    def planned() -> None:
        steps = plan(recipe, library, sources).steps
        assert all(store.get(step.fingerprint) is None for step in steps)

    def ancestors() -> None:
        assert len(ancestry(store, names[CHAIN - 1])) == CHAIN
        assert lineage(store.root, store, one()[:12])

    return {
        "store get": lambda: store.get(one()),
        "store find": lambda: store.find(one()[:12]),
        "store claim": claimed,
        "planning regime": planned,
        "cursus lineage": ancestors,
        "a report's records": lambda: provenance_records(store, [one() for _ in range(20)]),
        "what MLflow misses, by name": lambda: list(store.all(store.fingerprints() - set(names[1:]))),
    }


def news(folder: Path, lines: int) -> Callable[[], Any]:
    """The work of a launcher that follows a job, for one more line of metrics."""
    from tasks.launchers.following import Tail

    class CountingListener:
        def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
            self.count = len(lines)

        def finished(self, job: Job, result: Result) -> None: ...

    path = folder / METRICS
    with path.open("w", encoding="utf-8") as file:
        for step in range(1, lines + 1):
            file.write(json.dumps({"step": step, "tokens": step * 4096, "train/loss": 4.2, "lr": 1e-3}) + "\n")
    stage = Library(ROOT / "recipes").load("regime").stages["general"]
    job = Job(
        fingerprint="0" * 64, recipe="regime", stage_name="general", stage=stage, seed=0, language="en", tables={},
        out=folder
    )  # fmt: skip
    tail, listener = Tail(job), CountingListener()
    tail.report(listener)
    assert listener.count == lines

    def one_more() -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write('{"step": 1}\n')
        tail.report(listener)
        assert listener.count == 1

    return one_more


def tracked(root: Path, count: int, names: list[str]) -> dict[str, Callable[[], Any]]:
    """MLflow calls of a run that continues with `count` points, and those of a new run when MLflow has a run of each
    stage in `names`."""
    from mlflow.entities import Metric

    from tasks.servers.environment import prepare_environment
    from tasks.tracking.recorded_steps import recorded_fingerprints
    from tasks.tracking.recorder import Recorder

    prepare_environment(root)
    recorder = Recorder(root)
    experiment = recorder.experiment("large")
    run = str(recorder.client.create_run(experiment).info.run_id)
    copied(recorder.uri, run, names)
    steps = iter(range(10**9))

    def more(points: int) -> None:
        metrics = [Metric(f"metric{key}", 4.2, 0, next(steps)) for _ in range(points // KEYS) for key in range(KEYS)]
        recorder.log_points(run, metrics, {})

    for _ in range(count // 1000):
        more(1000)

    def last_steps() -> None:
        assert len(recorder.last_steps(run)) == KEYS

    def every() -> None:
        assert len(recorded_fingerprints(recorder)) == len(names)

    return {
        "what MLflow tells of": every,
        "a run's last steps in MLflow": last_steps,
        "twenty more points in MLflow": lambda: more(20),
    }


def copied(uri: str, run: str, names: list[str]) -> None:
    """Insert a finished run of each stage into the database, as a copy of `run`: through MLflow's API this would take
    minutes."""
    from sqlalchemy import MetaData, create_engine, insert, select

    engine = create_engine(uri)
    tables = MetaData()
    tables.reflect(engine, only=["runs", "tags"])
    runs, tags = tables.tables["runs"], tables.tables["tags"]
    with engine.begin() as connection:
        like = dict(connection.execute(select(runs).where(runs.c.run_uuid == run)).one()._mapping)
        connection.execute(insert(runs), [like | {"run_uuid": name[:32], "status": "FINISHED"} for name in names])
        tag_sets = (
            (name, {"cursus.fingerprint": name, "cursus.cached": "false", "cursus.stage": "general"}) for name in names
        )
        connection.execute(
            insert(tags),
            [
                {"run_uuid": of[:32], "key": key, "value": value}
                for of, those in tag_sets
                for key, value in those.items()
            ],
        )
    engine.dispose()


def timed(look: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    look()
    return time.perf_counter() - begun
