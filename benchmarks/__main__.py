"""`python -m benchmarks [NAME …]`: measure, write a record of each to benchmarks/records, and render
docs/performance.md.

python -m benchmarks                     all of them, the slow ones last
python -m benchmarks masked_lm           one
python -m benchmarks masked_lm --quick   only check that it runs: minutes, no record
python -m benchmarks --page              only the page, from the records
python -m benchmarks --list              list the benchmarks

Run by hand: `benchmarks.large_corpus`, `.leaks` and `.datasets`, which need data of their own, `.gpu_cases`, which
needs a GPU, and `.scaling_corpus --gigabytes 5`, which takes hours. Faults: `make faults`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.checkouts import ROOT
from benchmarks.harness import company, page, record
from benchmarks.harness.benchmark import Benchmark, all_benchmarks
from benchmarks.harness.kept_cases import folder_of
from benchmarks.harness.record import Measured, Record
from pipelines.lineage import hardware


def main() -> int:
    known = all_benchmarks()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(known)}; all when not given")
    parser.add_argument("--quick", action="store_true", help="only check that it runs; no record is written")
    parser.add_argument(
        "--threads",
        type=int,
        default=hardware.cores(),
        help="threads of the compared variants; all cores when not given",
    )
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--list", action="store_true", help="list the benchmarks")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(known)):
        parser.error(f"no benchmark is called {unknown[0]!r}. Known: {', '.join(known)}")
    chosen = {name: known[name] for name in known if not options.names or name in options.names}
    if options.list:
        for name, one in chosen.items():
            print(f"{name:<20} {'slow  ' if one.slow else '      '}{one.what}")
        return 0
    failed = (
        []
        if options.page
        else [name for name, one in chosen.items() if not _measure(one, options.threads, options.quick)]
    )
    if not options.quick:
        page.write(known)
    return 1 if failed else 0


def _measure(one: Benchmark, threads: int, quick: bool) -> bool:
    """Measure one benchmark and write its record; returns whether it succeeded."""
    if (reason := one.unavailable()) is not None:
        print(f"{one.name}: left out: {reason}", flush=True)
        return False
    keeping = None if quick else folder_of(one.name, company.commit())
    earlier = len(list(keeping.glob("*.json"))) if keeping is not None else 0
    run = os.environ[company.MARK] = uuid.uuid4().hex
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cursus-bench-") as folder, company.Watch(run) as watch:
        into = Path(folder) / "measured.json"
        module = ("-m", "benchmarks.harness.one", one.name)
        command = [sys.executable, *module, "--into", str(into), "--threads", str(threads)]
        command += ["--kept", str(keeping)] if keeping is not None else []
        environment = {**os.environ, **one.environment, "PYTHONPATH": str(ROOT)}
        status = subprocess.run([*command, *(["--quick"] if quick else [])], cwd=ROOT, env=environment).returncode
        if status or not into.exists():
            print(f"{one.name}: failed with exit status {status}", flush=True)
            return False
        measured = Measured.model_validate_json(into.read_bytes())
    if earlier:
        note = f"{earlier} cases were measured by an earlier attempt at this commit, which was interrupted"
        measured = measured.model_copy(update={"notes": (*measured.notes, note)})
    made = Record(
        name=one.name,
        what=one.what,
        measured=measured,
        threads=threads,
        machine=company.machine(),
        company=watch.company(),
        versions=company.versions(),
        commit=company.commit(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - begun, 1),
    )
    if not quick:
        record.write(made)
        if keeping is not None:
            shutil.rmtree(keeping, ignore_errors=True)
        page.write(all_benchmarks())
    print("\n".join(page.section(one, made)), flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
