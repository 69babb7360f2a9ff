"""The ranks of a job, the first of which waits for its turn: `python -m benchmarks.harness.ranks ORDER`."""

from __future__ import annotations

import sys
from pathlib import Path


def main(order: Path) -> None:
    """Run as many ranks as the job asks for, as a launcher does, until nothing more is asked of the first."""
    from torch.distributed import run

    from pipelines.recipe.job import Job
    from pipelines.training.ranks.local_ranks import words

    job = Job.model_validate_json(order.read_bytes())
    run.main(words("benchmarks.harness.stage", order, job.runtime.ranks, restarts=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
