"""A stage as a launcher trains it, which takes turns: `python -m benchmarks.harness.stage ORDER`.

ORDER holds a job. It runs the entry point of every rank (`pipelines.training.ranks.rank`); only Lightning's hook at the
start of a batch calls the gate first. Of several ranks (`benchmarks.harness.ranks`) the first has the gate: the others
wait for its gradients, and end when the measuring process closes the pipe that all of them share.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
import threading
from pathlib import Path
from typing import Any

from benchmarks.harness.gate import Gate


def main(order: Path, meet: Path | None = None) -> int:
    """Train until the measurement ends; returns the exit status of the rank."""
    from pipelines.training.ranks import rank

    if int(os.environ.get("RANK", "0")) > 0:
        os.dup2(2, 1)  # only the first rank replies
        threading.Thread(target=_exit_with_the_pipe, daemon=True).start()
        return rank.main(order, meet)
    from pipelines.training.loop.module import StageModule

    gate, begins = Gate(), StageModule.on_train_batch_start

    def waits(self: StageModule, batch: Any, batch_idx: int) -> None:
        if batch_idx % self.partition.accumulated == 0:
            gate.step()
        begins(self, batch, batch_idx)

    StageModule.on_train_batch_start = waits  # type: ignore[method-assign]
    status = rank.main(order, meet)
    gate.end()
    return status


def _exit_with_the_pipe() -> None:
    watched = select.poll()
    watched.register(0, 0)  # only hang-up events: the data in the pipe is for the first rank
    watched.poll()
    os._exit(0)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("order", type=Path)
    arguments.add_argument("--meet", type=Path)
    options = arguments.parse_args()
    sys.exit(main(options.order, options.meet))
