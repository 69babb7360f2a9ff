"""`python -m tests.mutants.run [WORD]`: makes every known mistake in a copy of the sources; the tests must see it.

The listed tests must pass in the copy as it is, and each of them must fail with its mistake. Mistakes without WORD in
their name are left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.copied_sources import copy_sources
from tests.mutants.known import KNOWN, Mutant

FAILED = 1
"""Exit status of pytest where tests failed: any other than 0 means that none was run."""


def main(word: str = "") -> int:
    """The number of mistakes that the tests do not see."""
    chosen = {name: mutant for name, mutant in KNOWN.items() if word in name}
    with TemporaryDirectory(prefix="cursus-mutants-") as folder:
        copy = Path(folder)
        copy_sources(copy)
        status, said = tested(copy, {test for mutant in chosen.values() for test in mutant.tests})
        if status:
            print(f"The tests fail without any mistake:\n{said}")
            return len(chosen)
        unseen = [name for name, mutant in chosen.items() if not seen(copy, name, mutant)]
    print(f"{len(chosen) - len(unseen)} of {len(chosen)} mistakes are seen")
    return len(unseen)


def tested(folder: Path, tests: Iterable[str]) -> tuple[int, str]:
    """The exit status of pytest on some tests of the sources in `folder`, and what it said."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=no", *sorted(tests)]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def seen(folder: Path, name: str, mutant: Mutant) -> bool:
    """Whether each of a mistake's tests fails with it."""
    path = folder / mutant.file
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        status, said = tested(folder, mutant.tests)
    finally:
        path.write_text(whole, encoding="utf-8")
    blind = [test for test in mutant.tests if not re.search(rf"^FAILED {re.escape(test)}(\[| |$)", said, re.MULTILINE)]
    print(f"{'seen  ' if status == FAILED and not blind else 'UNSEEN'} {name}", flush=True)
    if status not in (0, FAILED):
        print(said)
    for test in blind:
        print(f"       passes with it: {test}")
    return status == FAILED and not blind


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 100))
