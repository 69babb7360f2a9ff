"""The worker of a checkout: `python -m tasks.servers.worker [--healthcheck]`, Prefect's process worker behind
`run_policy`. With `--healthcheck` it answers at port 8080 (PREFECT_WORKER_WEBSERVER_PORT) whether it still polls."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect.settings import get_current_settings
from prefect.states import Failed
from prefect.utilities.processutils import command_to_string, get_sys_executable, setup_signal_handlers_worker
from prefect.workers.process import ProcessJobConfiguration, ProcessWorker, ProcessWorkerResult

from tasks.environment import project_root
from tasks.servers.deployments import WORKER
from tasks.servers.requests import mistake
from tasks.servers.run_policy import POOL, RefusedRunError, refusal

if TYPE_CHECKING:
    from anyio.abc import TaskStatus
    from prefect.client.schemas.objects import FlowRun

NO_PROCESS = "none"
"""Identifier of the process of a run that was refused."""


class CheckedWorker(ProcessWorker):
    """Refuses runs that the checkout at `root` does not provide for; Prefect marks them as crashed, with the reason."""

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(**options)
        self._root = root

    async def run(
        self,
        flow_run: FlowRun,
        configuration: ProcessJobConfiguration,
        task_status: TaskStatus[int] | None = None,
    ) -> ProcessWorkerResult:
        """Start the run's process and wait for its end. A run with a mistake in its request fails without one.

        Raises RefusedRunError before anything is started.
        """
        deployment = None
        if flow_run.deployment_id is not None:
            deployment = await self.client.read_deployment(flow_run.deployment_id)
        # read anew: what this worker knows of the pool may be older than the run
        pool = await self.client.read_work_pool(POOL)
        reason = refusal(self._root, flow_run, deployment, pool.base_job_template)
        if reason is None and configuration.command != command_to_string(
            [get_sys_executable(), "-m", "prefect.engine"]
        ):
            reason = "it has a command of its own"
        if reason is not None:
            raise RefusedRunError(f"this worker does not start the run {flow_run.name!r}: {reason}")
        assert deployment is not None and deployment.entrypoint is not None, "others are refused"
        schema = deployment.parameter_openapi_schema or {}
        known = await asyncio.to_thread(mistake, self._root, deployment.entrypoint, flow_run.parameters, schema)
        if known is None:
            return await super().run(flow_run, configuration, task_status)
        self.get_flow_run_logger(flow_run).error(known)
        await self.client.set_flow_run_state(flow_run.id, Failed(message=known), force=True)
        if task_status is not None:
            task_status.started(0)  # there is no process
        return ProcessWorkerResult(status_code=0, identifier=NO_PROCESS)


async def serve(root: Path, *, healthcheck: bool = False) -> None:
    """Start runs of the pool until a signal arrives; `healthcheck` serves whether it still polls."""
    setup_signal_handlers_worker(os.getpid(), "the worker", print)
    settings = get_current_settings().worker
    worker = CheckedWorker(
        root,
        work_pool_name=POOL,
        name=WORKER,
        create_pool_if_not_found=False,
        prefetch_seconds=settings.prefetch_seconds,
        heartbeat_interval_seconds=int(settings.heartbeat_seconds),
    )
    await worker.start(with_healthcheck=healthcheck)


if __name__ == "__main__":
    asyncio.run(serve(project_root(), healthcheck="--healthcheck" in sys.argv[1:]))
