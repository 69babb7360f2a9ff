"""One rank of a job: `python -m pipelines.training.ranks.rank ORDER`, started by torchrun, srun, or a worker of Ray.

    RANK, WORLD_SIZE, LOCAL_RANK     who this process is, as torchrun says it
    MASTER_ADDR, MASTER_PORT         where the ranks meet; or `--meet FILE`, for ranks of one machine

Ends with 0 when the job's result is written, with 2 after a user's mistake, which is told in the job's folder; a SIGTERM
to any rank lets all of them write a checkpoint together, and ends them with 143.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

MISTAKE = 2
"""Exit status after a user's mistake."""


def main(order: Path, meet: Path | None = None) -> int:
    """Take part in the job that `order` holds; the exit status."""
    from pipelines.errors import CursusError
    from pipelines.recipe.job import Job
    from pipelines.training.ranks.failure import keep_room, system_failure, tell_failure, told_failure

    job = Job.model_validate_json(order.read_bytes())
    if told_failure(job.out):
        return MISTAKE  # started again, after a mistake that starting again does not mend
    import torch

    from pipelines.training.ranks import process_group as group
    from pipelines.training.ranks.run import run

    torch.set_num_threads(job.runtime.threads)
    try:
        keep_room(job.out)
        with group.joined(job.runtime, meet and _of_this_start(meet)):
            run(job)
    except CursusError as error:
        tell_failure(job.out, error)
        return MISTAKE
    except OSError as error:
        tell_failure(job.out, system_failure(job.out, error))
        raise
    return 0


def _of_this_start(meet: Path) -> Path:
    """A file that ranks have met in cannot be used again; torchrun counts how often it has started them."""
    return meet.with_name(f"{meet.name}-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("order", type=Path)
    arguments.add_argument("--meet", type=Path)
    asked = arguments.parse_args()
    sys.exit(main(asked.order, asked.meet))
