"""Training on a real Ray cluster of two nodes: the weights, what a kill leaves, and what is said when it cannot be."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipelines.errors import CursusError, StageError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import CHECKPOINTS, METRICS, RESULT, Result
from pipelines.lineage.store import SCRATCH
from pipelines.recipe.job import Job, Runtime
from tasks.launchers import Launcher
from tasks.launchers.ray import RayLauncher
from tasks.servers.processes import free_port
from tests.forked_ranks import ForkedSession
from tests.pipelines.training.small_recipe import RECIPE
from tests.steps import ROOT, job_of, library_of, plan_of
from tests.tasks.launchers.two_raylets import Cluster

TWO_NODES = {"devices": 1, "nodes": 2}
GONE_SECONDS = 60
MakeJob = Callable[..., Job]


class Listening:
    """Does something once, when the first checkpoint is there."""

    def __init__(self, act: Callable[[], None] = lambda: None) -> None:
        self.results = list[Result]()
        self._act: Callable[[], None] | None = act

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        if self._act is not None and any((job.out / SCRATCH / CHECKPOINTS).glob("step-*")):
            act, self._act = self._act, None
            act()

    def finished(self, job: Job, result: Result) -> None:
        self.results.append(result)


@pytest.fixture
def cluster(raylets: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The two nodes; this process may come in."""
    for name, value in raylets.environment.items():
        monkeypatch.setenv(name, value)
    yield raylets
    assert gone(raylets.ranks) and gone(lambda: raylets.processes("ray::TrainController")), (
        "the cluster is left as it was"
    )


@pytest.fixture
def make_job(tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path) -> MakeJob:
    """Makes the pre-training of a small recipe, of so many steps, as a job in a folder of that name."""
    (tmp_path / "recipes").mkdir()
    step = plan_of(library_of(tmp_path / "recipes", small=RECIPE), "small", sources).steps[0]

    def make(name: str, steps: int = 60, **runtime: Any) -> Job:
        job = job_of(step, {}, tables, tmp_path / name, Runtime(log_every=5, checkpoint_every=5, **runtime))
        budget = job.stage.budget.model_copy(update={"tokens": steps * job.stage.budget.batch_tokens})
        return job.model_copy(update={"stage": job.stage.model_copy(update={"budget": budget})})

    return make


def launched(launcher: Launcher, job: Job, listener: Listening) -> Result:
    with launcher.open(ROOT, job.out.with_suffix(".log")) as launching:
        launching.run(job, listener)
    (result,) = listener.results
    return result


def gone(processes: Callable[[], list[psutil.Process]]) -> bool:
    deadline = time.monotonic() + GONE_SECONDS
    while processes() and time.monotonic() < deadline:
        time.sleep(0.1)
    return not processes()


@pytest.mark.timeout(600)  # three groups of two ranks, on what may be a busy machine
def test_a_rank_is_killed_on_one_of_two_nodes_and_the_weights_are_those_of_two_undisturbed_ranks(
    cluster: Cluster, make_job: MakeJob
) -> None:
    here, there = make_job("here", devices=2), make_job("there", **TWO_NODES)
    with ForkedSession(ROOT, here.out.with_suffix(".log")) as session:
        session.run(here, Listening())
    seen: list[dict[int, int]] = []

    def kill_one() -> None:
        ranks = cluster.ranks()
        seen.append({rank.ppid(): rank.pid for rank in ranks})
        ranks[-1].kill()

    result = launched(RayLauncher(address=cluster.address), there, Listening(kill_one))
    assert len(seen[0]) == 2, "one rank on each node"
    assert result.resumed_from_step and result.resumed_from_step >= 5, "it went on from a checkpoint"
    for file in ("model.safetensors", "tokenizer.json", METRICS):
        assert (here.out / file).read_bytes() == (there.out / file).read_bytes(), file


def test_cancelled_it_leaves_a_checkpoint_and_nothing_on_the_cluster(cluster: Cluster, make_job: MakeJob) -> None:
    job = make_job("long", steps=10**5, **TWO_NODES)

    def cancel() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launched(RayLauncher(address=cluster.address), job, Listening(cancel))
    assert not cluster.ranks(), "they are gone when the launcher is closed"
    assert not (job.out / RESULT).exists()
    (newest, *_) = sorted((job.out / SCRATCH / CHECKPOINTS).glob("step-*"), reverse=True)
    assert int(newest.name[5:14]) % 5 or int(newest.name[5:14]) > 10, "one was written because it was asked to end"


def test_ranks_end_with_a_driver_that_is_killed(cluster: Cluster, make_job: MakeJob) -> None:
    job = make_job("orphaned", steps=10**5, **TWO_NODES)

    def kill_driver() -> None:
        (driver,) = [
            one
            for one in psutil.Process().children()
            if one.status() != psutil.STATUS_ZOMBIE and "tasks.launchers.ray_driver" in one.cmdline()
        ]
        driver.kill()

    with pytest.raises(StageError, match="stage general ended without a result: killed by SIGKILL"):
        launched(RayLauncher(address=cluster.address), job, Listening(kill_driver))
    assert gone(cluster.ranks)


def test_nodes_that_never_come_are_not_waited_for_longer_than_asked(cluster: Cluster, make_job: MakeJob) -> None:
    job = make_job("three", devices=1, nodes=3)
    with pytest.raises(StageError) as refused:
        launched(RayLauncher(address=cluster.address, wait=2, restarts=0), job, Listening())
    said = str(refused.value)
    assert said.startswith(
        "stage general: 3 ranks with 1 CPU each and a node of its own could not be placed within 2 s;"
    ), said
    assert "127.0.0.2 with 1 CPU" in said and "127.0.0.3 with 1 CPU" in said
    assert "lower training.nodes, or raise training.launcher.wait" in said


def test_an_address_is_asked_for_and_a_silent_or_unprotected_one_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r"launcher 'ray', address: .*the address of a Ray cluster is host:port"):
        Launcher.model_validate({"name": "ray"})
    silent = f"127.0.0.1:{free_port()}"
    with pytest.raises(StageError, match=f"no Ray cluster answers at {silent}: Connection refused"):
        RayLauncher(address=silent).open(ROOT, tmp_path / "log")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        StageError, match="on another machine and no token is set: anyone who can reach such a cluster can run code"
    ):
        RayLauncher(address="ray.example.org:6379").open(ROOT, tmp_path / "log")


def test_what_answers_but_is_no_cluster_is_not_waited_for(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    script = (
        "from pipelines.corpora.engines import ray_cluster as c; c.JOIN_SECONDS = 2; "
        "import sys; c.join(sys.argv[1], {}, show_logs=False)"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-c", script, address],
            cwd=ROOT,
            env=dict(os.environ),
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert (
        f"{CursusError.__name__}: {address} answers, but is not a Ray cluster that accepts this machine" in done.stderr
    )
