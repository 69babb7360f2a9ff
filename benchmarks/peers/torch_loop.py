"""A stage's network, batches, objectives and optimizer in a bare loop on torch's own kernels:
`python -m benchmarks.peers.torch_loop ORDER`, with the ORDER of `bare_loop`."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.peers.bare_loop import train

if __name__ == "__main__":
    sys.exit(train(Path(sys.argv[1]), accelerated=False))
