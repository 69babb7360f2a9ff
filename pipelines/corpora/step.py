"""How every step starts and fails: `python -m pipelines.corpora.<step> <dataset>`, in the root of a checkout."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from pipelines.errors import CursusError, DataError, StoreError

TABLES = ("general", "domain", "task_text", "train", "validation", "test")
"""What a prepared dataset consists of."""


def run_step(step: Callable[[str, Path], None]) -> NoReturn:
    """Run `step(dataset, root)` for the dataset named on the command line.

    A user's mistake is printed as one message, `DataError: …`, whose further lines are indented, and ends with code 2.
    """
    if len(sys.argv) != 2:
        print(f"usage: python -m {step.__module__} DATASET", file=sys.stderr)
        raise SystemExit(2)
    try:
        step(sys.argv[1], Path.cwd())
    except CursusError as mistake:
        fail(mistake)
    except FileNotFoundError as missing:
        fail(DataError(f"{missing.filename or missing} is missing: run the steps before this one, 'dvc repro' does it"))
    except OSError as trouble:
        if trouble.errno != errno.ENOSPC:
            raise
        fail(StoreError(f"no space left on the device of {Path.cwd() / 'data'}: free some and run again"))
    raise SystemExit(0)


def fail(mistake: CursusError) -> NoReturn:
    """Print the mistake so that `tasks.datasets` can find it in a log, and end with code 2."""
    print(f"{type(mistake).__name__}: " + str(mistake).replace("\n", "\n  "), file=sys.stderr, flush=True)
    raise SystemExit(2) from mistake


def prepared(dataset: str, root: Path) -> Path:
    """The folder that holds the tables of a dataset, and the tables of the steps before them."""
    return root / "data" / "prepared" / dataset
