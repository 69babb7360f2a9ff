"""The ranks of a job, the first of which takes turns: `python -m benchmarks.harness.ranks ORDER`."""

from __future__ import annotations

import sys
from pathlib import Path


def main(order: Path) -> None:
    """Run the job's ranks, as a launcher does, until the measurement ends."""
    from torch.distributed import run

    from pipelines.recipe.job import Job
    from pipelines.training.ranks.local_ranks import torchrun_arguments

    job = Job.model_validate_json(order.read_bytes())
    run.main(torchrun_arguments("benchmarks.harness.stage", order, job.runtime.ranks, restarts=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
