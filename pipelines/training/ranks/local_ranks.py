"""Several ranks on this machine: `python -m pipelines.training.ranks.local_ranks ORDER --ranks N`, which torchrun starts and watches.

A rank that dies ends the others; all are started again from the last checkpoint, a few times. The ranks meet in a file, and
talk over the loopback interface. When standard input closes, because whoever started this process has closed it or died,
they are asked to end (SIGTERM), and leave a checkpoint.
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

from pipelines.safety.parent_process import at_callers_end


def main(order: Path, ranks: int, restarts: int) -> None:
    """Run the ranks until all have ended well. Raises what torchrun raises when they could not."""
    from torch.distributed import run

    at_callers_end(lambda: os.kill(os.getpid(), signal.SIGTERM))
    run.main(words("pipelines.training.ranks.rank", order, ranks, restarts))


def words(rank: str, order: Path, ranks: int, restarts: int) -> list[str]:
    """What torchrun is told to run the module `rank` as the ranks of a job; the environment is made ready for it."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    folder = order.parent
    meeting = folder / f"agents-{os.getpid()}"  # of this start: a file that has been met in cannot be used again
    return [
        *("--nnodes", "1", "--nproc-per-node", str(ranks), "--max-restarts", str(restarts)),
        *("--rdzv-backend", "c10d", "--rdzv-id", str(os.getpid())),
        *("--rdzv-endpoint", str(meeting), "--rdzv-conf", "store_type=file", "--local-addr", "127.0.0.1"),
        *("-m", rank, str(order), "--meet", str(folder / f"ranks-{os.getpid()}")),
    ]


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("order", type=Path)
    arguments.add_argument("--ranks", type=int, required=True)
    arguments.add_argument("--restarts", type=int, default=3)
    asked = arguments.parse_args()
    main(asked.order, asked.ranks, asked.restarts)
