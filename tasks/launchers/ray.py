"""Training on a Ray cluster: one rank a device on as many nodes as are asked for, wherever the cluster has room.

    flow ── driver, a child process here ── Ray's controller ── a worker a rank, on any node
                                                 └ a rank that dies: all start again from the last checkpoint

Ray itself is never imported in the flow: it lives in the driver, which ends with the flow and takes its ranks with it.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from pipelines.corpora.engines import ray_cluster
from pipelines.errors import CursusError, StageError
from pipelines.recipe.job import Job
from tasks.launchers import Launcher, Launching
from tasks.launchers.child import Child
from tasks.launchers.following import Attempt
from tasks.launchers.ray_driver import ABORT_SECONDS, STOP_SECONDS


class Ray(Launcher, name="ray"):
    """A running Ray cluster, by its explicit address. Nodes share the checkout, its environment, the data and the store."""

    address: ray_cluster.Address = Field("", validate_default=True)
    """`host:port` of its head. There is no default: Ray would join whatever cluster was started last on this machine."""
    restarts: int = Field(3, ge=0)
    """How often the ranks of a job are started again, from the last checkpoint, after one of them has died. Nodes that are
    taken away with notice do not count."""
    cpus: float | None = Field(None, gt=0)
    """What each rank reserves on its node; None: as many as it has threads."""
    wait: float = Field(600, gt=0)
    """Seconds that the cluster may take to make room for a job's ranks: other jobs end, an autoscaler adds nodes."""
    jobs: int = Field(1, ge=1)
    """How many jobs of an execution may be on the cluster side by side."""

    def open(self, root: Path, log: Path) -> RayLaunching:
        return RayLaunching(root, log, self)

    def at_once(self, cores: int, devices: int) -> int:
        return self.jobs


class RayLaunching(Launching):
    """A driver for every job."""

    def __init__(self, root: Path, log: Path, asked: Ray) -> None:
        super().__init__(root, log)
        self._asked, self._started = asked, 0
        try:
            ray_cluster.check(asked.address)
        except CursusError as trouble:
            raise StageError(str(trouble)) from None

    def _begin(self, job: Job, order: Path) -> Attempt:
        asked = self._asked
        with self._lock:
            log = self.log.with_name(f"{self.log.stem}-{self._started}.log")
            self._started += 1
        command = ["tasks.launchers.ray_driver", str(order), "--address", asked.address]
        command += ["--restarts", str(asked.restarts), "--wait", str(asked.wait)]
        command += ["--cpus", str(asked.cpus or job.runtime.threads)]
        return Child(self.root, log, tuple(command), grace=STOP_SECONDS + ABORT_SECONDS + 5)

    def _ended(self, attempt: Attempt) -> None:
        assert isinstance(attempt, Child)
        attempt.wait()
