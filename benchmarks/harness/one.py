"""Run one benchmark in a separate process: `python -m benchmarks.harness.one NAME --into FILE --threads 2`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.harness.benchmark import Setting, all_benchmarks


def main() -> int:
    """Measure, and write the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--kept", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cursus-bench-", ignore_cleanup_errors=True) as work:
        setting = Setting(options.quick, options.threads, Path(work), options.kept)
        measured = all_benchmarks()[options.name].measure(setting)
    options.into.write_text(measured.model_dump_json(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
