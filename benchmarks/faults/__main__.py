"""`python -m benchmarks.faults [KIND …]`: run the missing cases of every kind, and render docs/reliability.md.

python -m benchmarks.faults                        all missing cases of all kinds; continues an interrupted campaign,
                                                   and begins one where the code has changed
python -m benchmarks.faults kill_flow --cases 3    one kind, until it has three cases
python -m benchmarks.faults --again                repeat the failed cases, after a fix
python -m benchmarks.faults --page                 only the page, from the records
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.faults import page, records
from benchmarks.faults.fault import Fault
from benchmarks.faults.kinds import kinds
from benchmarks.faults.series import run_series


def main() -> int:
    known = kinds()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(known)}; all when not given")
    parser.add_argument("--cases", type=int, help="number of cases of each kind; the kind's own number when not given")
    parser.add_argument("--again", action="store_true", help="run failed cases again; their failures stay on record")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--work", type=Path, help="folder for checkouts; a temporary folder when not given")
    options = parser.parse_args()
    if unknown := sorted(set(options.kinds) - set(known)):
        parser.error(f"no kind of fault is called {unknown[0]!r}. Known: {', '.join(known)}")
    if not options.page:
        chosen = {name: known[name] for name in options.kinds or known}
        work = (options.work or Path(tempfile.gettempdir()) / "cursus-faults").resolve()
        _strike(chosen, options.cases, work, again=options.again)
    page.write(known)
    print(page.summary(known))
    return 0 if all(record.good for name in known for record in records.read(name)) else 1


def _strike(chosen: dict[str, Fault], cases: int | None, work: Path, *, again: bool) -> None:
    from benchmarks.faults.code import code
    from benchmarks.faults.regime import regime

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that child processes are ended
    with regime(work) as prepared:
        # one series of each kind in turn, so that a campaign that is stopped early has covered all kinds
        waiting, begun = dict(chosen), datetime.now(UTC).isoformat(timespec="seconds")
        while waiting:
            for name, fault in list(waiting.items()):
                count = cases if cases is not None else fault.cases
                done = {
                    one.number
                    for one in records.read(name)
                    if one.code == code() and (one.good or not again or one.date >= begun)
                }
                missing = [number for number in range(count) if number not in done]
                reason = fault.unavailable()
                if reason is not None or not missing:
                    if reason is not None:
                        print(f"{name}: left out: {reason}", flush=True)
                    del waiting[name]
                    continue
                for record in run_series(fault, missing[: fault.row], prepared):
                    print(f"{name} {record.number}: {'good' if record.good else record}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
