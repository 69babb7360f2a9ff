"""One rank of a job: `python -m pipelines.training.ranks.rank ORDER`, started by torchrun, srun, or a Ray worker.

    RANK, WORLD_SIZE, LOCAL_RANK     identity of this process, as torchrun sets it
    MASTER_ADDR, MASTER_PORT         rendezvous of the ranks; or `--meet FILE`, for ranks of one machine

Exits with 0 when the job's result is written, and with 2 after a user's mistake, which is recorded in the job's folder.
A SIGTERM to any rank makes all of them write a checkpoint together and exit with 143.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from pipelines.safety.garbage_collection import collection_paused

MISTAKE = 2
"""Exit status after a user's mistake."""
LIBRARIES = (
    "torch",
    "pytorch_lightning",
    "pipelines.training.loop.fit",
    "pipelines.training.loop.module",
    "transformers.models.auto",
)
"""Modules that every training job imports."""


def import_libraries() -> None:
    """Import what training needs, once, at the start of a process."""
    with collection_paused():
        for name in LIBRARIES:
            importlib.import_module(name)


def main(order: Path, rendezvous: Path | None = None) -> int:
    """Take part in the job that `order` holds; returns the exit status."""
    from pipelines.errors import CursusError
    from pipelines.recipe.job import Job
    from pipelines.training.ranks.failure import disk_error, has_failed, record_failure, reserve_space

    job = Job.model_validate_json(order.read_bytes())
    if has_failed(job.out):
        return MISTAKE  # restarted after a mistake that a restart does not fix
    import torch

    from pipelines.training.ranks import process_group
    from pipelines.training.ranks.run import run

    torch.set_num_threads(job.runtime.threads)
    try:
        reserve_space(job.out)
        with process_group.initialized(job.runtime, rendezvous and _for_this_start(rendezvous)):
            run(job)
    except CursusError as error:
        record_failure(job.out, error)
        return MISTAKE
    except OSError as error:
        record_failure(job.out, disk_error(job.out, error))
        raise
    return 0


def _for_this_start(rendezvous: Path) -> Path:
    """A new rendezvous file for each restart, which torchrun counts: a used one cannot be used again."""
    return rendezvous.with_name(f"{rendezvous.name}-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("order", type=Path)
    parser.add_argument("--meet", type=Path, dest="rendezvous")
    arguments = parser.parse_args()
    import_libraries()
    sys.exit(main(arguments.order, arguments.rendezvous))
