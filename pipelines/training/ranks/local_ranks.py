"""Several ranks on this machine: `python -m pipelines.training.ranks.local_ranks ORDER --ranks N`, through torchrun.

A rank that dies ends the others; all are restarted from the last checkpoint, a few times. The ranks rendezvous through
a file and communicate over the loopback interface. When standard input closes, because the parent process has closed it
or died, they get SIGTERM and write a checkpoint before they end.
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

from pipelines.safety.parent_process import on_parent_exit


def main(order: Path, ranks: int, restarts: int) -> None:
    """Run the ranks until all have ended well. Raises torchrun's error where they could not."""
    from torch.distributed import run

    on_parent_exit(lambda: os.kill(os.getpid(), signal.SIGTERM))
    run.main(torchrun_arguments("pipelines.training.ranks.rank", order, ranks, restarts))


def torchrun_arguments(rank: str, order: Path, ranks: int, restarts: int) -> list[str]:
    """Arguments of torchrun to run the module `rank` as the ranks of a job; sets the environment that gloo needs."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    folder = order.parent
    agents = folder / f"agents-{os.getpid()}"  # one per start: a rendezvous file cannot be used twice
    return [
        *("--nnodes", "1", "--nproc-per-node", str(ranks), "--max-restarts", str(restarts)),
        *("--rdzv-backend", "c10d", "--rdzv-id", str(os.getpid())),
        *("--rdzv-endpoint", str(agents), "--rdzv-conf", "store_type=file", "--local-addr", "127.0.0.1"),
        *("-m", rank, str(order), "--meet", str(folder / f"ranks-{os.getpid()}")),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("order", type=Path)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--restarts", type=int, default=3)
    arguments = parser.parse_args()
    main(arguments.order, arguments.ranks, arguments.restarts)
