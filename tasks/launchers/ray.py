"""Training on a Ray cluster: one rank per device on the configured number of nodes, wherever the cluster has room.

    flow ── driver, a child process here ── Ray's controller ── one worker per rank, on any node
                                                 └ a rank dies: all ranks restart from the last checkpoint

Ray is never imported in the flow: the driver imports it, ends with the flow, and ends its ranks.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from pipelines.corpora.engines import ray_cluster
from pipelines.errors import CursusError, StageError
from pipelines.recipe.job import Job
from tasks.launchers import Launcher, LauncherSession
from tasks.launchers.child import Child
from tasks.launchers.following import Attempt
from tasks.launchers.ray_driver import ABORT_SECONDS, STOP_SECONDS


class RayLauncher(Launcher, name="ray"):
    """A running Ray cluster, by its explicit address. Its nodes share the checkout, its environment, the data and the
    store."""

    address: ray_cluster.Address = Field("", validate_default=True)
    """`host:port` of the head node. No default, because Ray's would join whichever cluster this machine started
    last."""
    restarts: int = Field(3, ge=0)
    """How often the ranks of a job are restarted, from the last checkpoint, after one of them has died. Announced node
    removals do not count."""
    cpus: float | None = Field(None, gt=0)
    """CPUs that each rank reserves on its node; None: its number of threads."""
    wait: float = Field(600, gt=0)
    """Seconds to wait for free resources for a job's ranks, until other jobs end or an autoscaler adds nodes."""
    jobs: int = Field(1, ge=1)
    """Maximum number of concurrent jobs of an execution on the cluster."""

    def open(self, root: Path, log: Path) -> RaySession:
        return RaySession(root, log, self)

    def concurrent_jobs(self, cores: int, devices: int) -> int:
        return self.jobs


class RaySession(LauncherSession):
    """One driver process per job."""

    def __init__(self, root: Path, log: Path, settings: RayLauncher) -> None:
        super().__init__(root, log)
        self._settings, self._started = settings, 0
        try:
            ray_cluster.check(settings.address)
        except CursusError as error:
            raise StageError(str(error)) from None

    def _begin(self, job: Job, order: Path) -> Attempt:
        settings = self._settings
        with self._lock:
            log = self.log.with_name(f"{self.log.stem}-{self._started}.log")
            self._started += 1
        command = ["tasks.launchers.ray_driver", str(order), "--address", settings.address]
        command += ["--restarts", str(settings.restarts), "--wait", str(settings.wait)]
        command += ["--cpus", str(settings.cpus or job.runtime.threads)]
        return Child(self.root, log, tuple(command), grace=STOP_SECONDS + ABORT_SECONDS + 5)

    def _ended(self, attempt: Attempt) -> None:
        assert isinstance(attempt, Child)
        attempt.wait()
