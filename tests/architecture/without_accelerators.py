"""`python -m tests.architecture.without_accelerators [TESTS]`: checks and tests without any accelerator.

An accelerator makes a step faster and changes nothing else, so its folder can be deleted: `make check` and
`make test-fast` pass, and plain torch computes. The known flaws of locked versions are left out, for they are the same
with an accelerator. TESTS are run in place of those of `make test-fast`, all but the slow ones.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests import tiers
from tests.copied_sources import copy_sources

ACCELERATORS = Path("pipelines/parts/accelerators")
PYTEST = ("-m", "pytest", "-n", os.environ.get("JOBS", "3"), "--dist", "loadgroup", "--no-loadscope-reorder")
TOOLS = Path(sys.executable).parent


def main() -> int:
    """The exit status of the first command that fails, or 0."""
    with TemporaryDirectory(prefix="cursus-without-") as folder:
        copy = Path(folder)
        copy_sources(copy)
        for accelerator in [path for path in (copy / ACCELERATORS).iterdir() if path.is_dir()]:
            shutil.rmtree(accelerator)
        environment = {**os.environ, "PYTHONPATH": folder}
        marked = f"not {tiers.SLOW}" if sys.argv[1:] else f"not {tiers.SLOW} and not {tiers.LONG}"
        for command in (
            [str(TOOLS / "ruff"), "check", "."],
            [str(TOOLS / "ruff"), "format", "--check", "."],
            [str(TOOLS / "mypy")],
            [str(TOOLS / "lint-imports")],
            [sys.executable, *PYTEST, "-m", marked, *sys.argv[1:]],
        ):
            print("Without accelerators:", *command, flush=True)
            if status := subprocess.run(command, cwd=copy, env=environment).returncode:
                return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
