"""The driver of one job on a Ray cluster: `python -m tasks.launchers.ray_driver ORDER --address HOST:PORT`.

Ray's TorchTrainer places the ranks, creates their process group, and restarts all of them when one dies. When standard
input closes, because the flow has closed it or died, the ranks are requested to write a checkpoint, and end before this
process does.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.corpora.engines import ray_cluster
from pipelines.errors import CursusError, StageError
from pipelines.recipe.job import Job, Runtime
from pipelines.safety.loopback import is_loopback
from pipelines.safety.parent_process import on_parent_exit
from pipelines.training.ranks.failure import has_failed, record_failure
from pipelines.training.ranks.process_group import TIMEOUT
from pipelines.training.ranks.rank import MISTAKE
from tasks.launchers.environment import training_environment
from tasks.launchers.ray_rank import STOP, run_rank

if TYPE_CHECKING:
    from ray.train import TrainingFailedError

POLL_SECONDS = 0.5
STOP_SECONDS = 7.0
"""Time that ranks have to write a checkpoint, before Ray ends them."""
ABORT_SECONDS = 10.0
"""Time that Ray has to end the ranks cleanly."""


def main(order: Path, address: str, *, restarts: int, cpus: float, wait: float) -> int:
    """Run the job that is serialised in `order`; returns the exit status."""
    job = Job.model_validate_json(order.read_bytes())
    order.with_name(STOP).unlink(missing_ok=True)
    on_parent_exit(partial(_end_with_caller, order))
    try:
        ray_cluster.join(address, training_environment(), show_logs=True)
        # the sender of SIGTERM has closed standard input as well; Ray would exit without stopping the ranks
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        threading.Thread(target=_end_with_mistake, args=(job,), daemon=True).start()
        _train(job, order, restarts, cpus, wait)
    except CursusError as error:
        record_failure(job.out, error)
    return MISTAKE if has_failed(job.out) else 0


def _train(job: Job, order: Path, restarts: int, cpus: float, wait: float) -> None:
    # read by Ray when its workers are placed: each attempt may take its share of the total waiting time
    os.environ["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = str(wait / (restarts + 1))
    os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", str(POLL_SECONDS))
    from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
    from ray.train.torch import TorchConfig, TorchTrainer

    runtime = job.runtime
    gpu = runtime.accelerator == "gpu"
    near = all(map(is_loopback, ray_cluster.nodes()))
    reserved = {"CPU": cpus, **({"GPU": 1.0} if gpu else {})}
    trainer = TorchTrainer(
        run_rank,
        train_loop_config={"order": str(order), "root": str(Path.cwd())},
        torch_config=TorchConfig(
            backend="cpu:gloo,cuda:nccl" if gpu else "gloo", timeout_s=int(TIMEOUT.total_seconds())
        ),
        scaling_config=ScalingConfig(
            num_workers=runtime.ranks,
            use_gpu=gpu,
            resources_per_worker=reserved,
            # one rank per node is guaranteed; several ranks per node fill one node after the other
            placement_strategy="STRICT_SPREAD" if runtime.devices == 1 else "PACK",
        ),
        # ray.train's type annotations are those of its first version; the second one runs
        run_config=RunConfig(  # type: ignore[call-arg]
            name="ray",
            storage_path=str(order.parent),
            # gloo would otherwise listen on the machine's first interface
            worker_runtime_env={"env_vars": {"GLOO_SOCKET_IFNAME": "lo"}} if near else {},
            failure_config=FailureConfig(  # type: ignore[call-arg]
                max_failures=restarts, controller_failure_limit=restarts
            ),
        ),
    )
    try:
        trainer.fit()
    except TrainingFailedError as failed:
        if not has_failed(job.out):
            raise StageError(_reason(failed, runtime, reserved, wait)) from None


def _reason(failed: TrainingFailedError, runtime: Runtime, reserved: dict[str, float], wait: float) -> str:
    """Ray's error in one sentence."""
    from ray.train import WorkerGroupError

    if isinstance(failed, WorkerGroupError):
        rank, error = min(failed.worker_failures.items())
        return f"rank {rank} ended without a result, and its restarts failed as well: {_first_line(error)}"
    available = [
        f"{address} with {_text({name: resources.get(name, 0) for name in reserved})}"
        for address, resources in ray_cluster.nodes().items()
    ]
    spread = " and a node of its own" if runtime.devices == 1 else ""
    return (
        f"{runtime.ranks} ranks with {_text(reserved)} each{spread} could not be placed within {wait:g} s; the nodes "
        f"of the cluster are {', '.join(available)}: lower training.nodes, or raise training.launcher.wait, in "
        f"params.yaml ({_first_line(failed)})"
    )


def _text(resources: dict[str, float]) -> str:
    return " and ".join(f"{count:g} {name}" for name, count in resources.items())


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if not line.endswith("error:")), type(error).__name__)


def _end_with_caller(order: Path) -> None:
    order.with_name(STOP).touch()
    time.sleep(STOP_SECONDS)
    _abort()


def _end_with_mistake(job: Job) -> None:
    """Abort when a rank has recorded a user's mistake: the other ranks would wait for it until the group's timeout."""
    while not has_failed(job.out):
        time.sleep(POLL_SECONDS)
    _abort()


def _abort() -> None:
    """Interrupt this process like Ctrl-C, so that Ray's trainer ends its workers; exit after `ABORT_SECONDS` in any
    case."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(ABORT_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("order", type=Path)
    arguments.add_argument("--address", required=True)
    arguments.add_argument("--restarts", type=int, default=3)
    arguments.add_argument("--cpus", type=float, default=1)
    arguments.add_argument("--wait", type=float, default=600)
    options = arguments.parse_args()
    sys.exit(main(options.order, options.address, restarts=options.restarts, cpus=options.cpus, wait=options.wait))
