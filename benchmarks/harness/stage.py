"""A stage as a launcher trains it, which waits for its turn: `python -m benchmarks.harness.stage ORDER`.

ORDER holds a job. It goes the way of every rank (`pipelines.training.rank`); only the hook that Lightning calls when a batch
begins is told to the gate first.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks.harness.gate import Gate


def main(order: Path) -> int:
    """Train until nothing more is asked for; the exit status of the rank."""
    from pipelines.training import rank
    from pipelines.training.module import StageModule

    gate, begins = Gate(), StageModule.on_train_batch_start

    def waits(self: StageModule, batch: Any, batch_idx: int) -> None:
        if batch_idx % self.cut.accumulated == 0:
            gate.step()
        begins(self, batch, batch_idx)

    StageModule.on_train_batch_start = waits  # type: ignore[method-assign]
    status = rank.main(order)
    gate.end()
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
