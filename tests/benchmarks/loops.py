"""A loop that waits for its turns, for the tests of pacing: `python -m tests.benchmarks.loops FILE`.

FILE holds how many steps there are, and what the loop says when it fails at its end; it counts them beside FILE.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.harness.gate import Gate

if __name__ == "__main__":
    path = Path(sys.argv[1])
    told, gate = json.loads(path.read_bytes()), Gate()
    print("what a library prints is no answer")
    for number in range(told["steps"]):
        gate.step()
        path.with_suffix(".count").write_text(str(number))
    if told["fails"]:
        raise RuntimeError(told["fails"])
    gate.end()
