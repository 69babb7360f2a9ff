"""Common frame of all steps: start, resume, fail.

python -m pipelines.corpora.steps.<step> <dataset>      # in the root of a checkout

step = begin("clean", dataset, root)
with step.writing("cleaned") as folder:
    mapped(…, folder / "general", …, step.unfinished("general"), step.processes)
"""

from __future__ import annotations

import errno
import importlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from pipelines.corpora.engines.work import reporting, using_engine
from pipelines.corpora.settings.dataset import DatasetSettings, load_dataset
from pipelines.corpora.settings.runtime import DataRuntime, load_runtime
from pipelines.corpora.shards.held_out import HELD_OUT
from pipelines.corpora.shards.writing import read_json, replaced_atomically
from pipelines.errors import CursusError, DataError, StoreError
from pipelines.lineage.fingerprint import fingerprint
from pipelines.task_families.labelled_tables import NAMED, PARTS, task_and_part

CORPORA = ("general", "domain", "task_text")
"""Tables of plain text: folders of shards."""
LABELLED = PARTS
"""Tables of labelled examples: single Parquet files."""
TABLES = (*CORPORA, *LABELLED)
"""Tables of a prepared dataset."""
PLAIN = ("general", "domain", "unlabelled")
"""Tables of plain text during preparation; `unlabelled` is text of the task without labels. Datasets may have further
tables (`pipelines.corpora.settings.tables`)."""

COUNTS = "counts.json"
"""File in the folder of a step: what each step up to it did to each table."""
_SHARDS = "shards"
PROGRESS = "progress: "
"""Beginning of a line on standard output about how far a step is."""
PROGRESS_SECONDS = 5


@dataclass(frozen=True)
class DataStep:
    """One step of preparing one dataset, with its folders and its unfinished work."""

    dataset: str
    root: Path
    settings: DatasetSettings
    runtime: DataRuntime
    work: Path
    """Folder for unfinished work, specific to the exact inputs, settings and code."""

    @property
    def home(self) -> Path:
        """Folder of the dataset."""
        return prepared(self.dataset, self.root)

    @property
    def processes(self) -> int:
        """Number of worker processes."""
        return self.runtime.workers

    def unfinished(self, table: str) -> Path:
        """Folder for finished units of work on a table, so that an interrupted step resumes from there."""
        return self.work / table

    def unfinished_table(self, table: str) -> Path:
        """Folder for finished units of work on a table of plain text."""
        # a name that the user chose may be that of another unit
        return self.unfinished(f"corpus.{table}" if table in self.settings.corpora else table)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Context with a temporary folder that replaces `home/name` on success; unfinished work is then deleted."""
        with replaced_atomically(self.home / name) as folder:
            yield folder
        self.finished()

    def finished(self) -> None:
        """Delete unfinished work once the outputs of the step are in place."""
        shutil.rmtree(self.work.parent, ignore_errors=True)
        with suppress(OSError):  # another step of this dataset may have unfinished work
            self.work.parent.parent.rmdir()


def begin(name: str, dataset: str, root: Path, before: str | tuple[str, ...] = ()) -> DataStep:
    """Start the step `name`, which reads the folders `before`; delete unfinished work of other inputs or code."""
    pinned = read_json(root / "data" / "pins" / f"{dataset}.json")["steps"][name]
    folders = (before,) if isinstance(before, str) else before
    read = [file for folder in folders for file in sorted((prepared(dataset, root) / folder).rglob("*"))]
    # shards are identified by the sha256 in their manifest
    known = [file for file in read if file.suffix == ".json" or file.parent.name in folders]
    inputs = {
        file.relative_to(root).as_posix(): sha256(file.read_bytes()).hexdigest() for file in known if file.is_file()
    }
    unfinished = prepared(dataset, root) / ".unfinished" / name
    work = unfinished / fingerprint({"step": pinned, "inputs": inputs})[:16]
    for other in unfinished.glob("*"):
        if other != work:
            shutil.rmtree(other)
    return DataStep(dataset, root, load_dataset(dataset, root), load_runtime(root), work)


def history(before: list[Any], step: str, tables: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    """Append to `before` what `step` did to each table: totals, dropped and changed texts, but not the shards."""
    entries = {name: {key: value for key, value in table.items() if key != _SHARDS} for name, table in tables.items()}
    return [*before, {"step": step, "tables": entries}]


def table_path(home: Path, name: str) -> Path:
    """Path of the table `name` of a prepared dataset: a folder of shards, or a file.

    Tables that only some datasets have are in one folder: DVC has to know the outputs of a step for all datasets.
    """
    if name in CORPORA:
        return home / name
    if name in LABELLED or name == HELD_OUT:
        return home / f"{name}.parquet"
    return home / NAMED / (f"{name}.parquet" if task_and_part(name) else name)


def run_step(step: Callable[[str, Path], None]) -> NoReturn:
    """Run `step(dataset, root)` for the dataset named on the command line.

    A user error is printed as one message, `DataError: …`, whose further lines are indented; the exit code is 2.
    """
    if len(sys.argv) != 2:
        print(f"usage: python -m {step.__module__} DATASET", file=sys.stderr)
        raise SystemExit(2)
    try:
        with using_engine(load_runtime(Path.cwd()).engine), reporting(_PrintedProgress()):
            _importable(step)(sys.argv[1], Path.cwd())
    except CursusError as mistake:
        fail(mistake)
    except FileNotFoundError as missing:
        fail(DataError(f"{missing.filename or missing} is missing: run the steps before this one, with 'dvc repro'"))
    except OSError as trouble:
        if trouble.errno != errno.ENOSPC:
            raise
        fail(StoreError(f"no space left on the device of {Path.cwd() / 'data'}: free some space and run again"))
    raise SystemExit(0)


class _PrintedProgress:
    """Prints lines of progress that `tasks.datasets.step_progress` reads, at most one in PROGRESS_SECONDS."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, line: str) -> None:
        if time.monotonic() - self._last >= PROGRESS_SECONDS:
            self._last = time.monotonic()
            print(f"{PROGRESS}{line}", flush=True)


def _importable(step: Callable[[str, Path], None]) -> Callable[[str, Path], None]:
    """The same function from its module by name: units of work are pickled by it, and `__main__` differs in workers."""
    spec = sys.modules[step.__module__].__spec__
    return getattr(importlib.import_module(spec.name), step.__name__) if spec is not None else step


def fail(mistake: CursusError) -> NoReturn:
    """Print an error so that `tasks.datasets.prepared` can find it in a log, and exit with code 2."""
    print(f"{type(mistake).__name__}: " + str(mistake).replace("\n", "\n  "), file=sys.stderr, flush=True)
    raise SystemExit(2) from mistake


def prepared(dataset: str, root: Path) -> Path:
    """Folder of a dataset: its tables, and the outputs of the steps before them."""
    return root / "data" / "prepared" / dataset
