"""How every step starts, goes on and fails: `python -m pipelines.corpora.<step> <dataset>`, in the root of a checkout.

step = begin("clean", dataset, root)
with step.writing("cleaned") as folder:
    mapped(…, folder / "general", …, step.unfinished("general"), step.processes)
"""

from __future__ import annotations

import errno
import importlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from pipelines.corpora.engines.work import using_engine
from pipelines.corpora.settings.dataset import DatasetSettings, load_dataset
from pipelines.corpora.settings.runtime import DataRuntime, load_runtime
from pipelines.corpora.shards.writing import read_json, replaced_atomically
from pipelines.errors import CursusError, DataError, StoreError
from pipelines.lineage.fingerprint import fingerprint

CORPORA = ("general", "domain", "task_text")
"""Tables of plain text: folders of shards."""
LABELLED = ("train", "validation", "test")
"""Tables of labelled examples: single Parquet files."""
TABLES = (*CORPORA, *LABELLED)
"""What a prepared dataset consists of."""
PLAIN = ("general", "domain", "unlabelled")
"""Tables of plain text on the way there; `unlabelled` is what the task brings without labels."""


COUNTS = "counts.json"
"""File in the folder of a step: what every step so far made of each table."""
_SHARDS = "shards"


@dataclass(frozen=True)
class DataStep:
    """One step of one dataset, and where its unfinished work stands."""

    dataset: str
    root: Path
    settings: DatasetSettings
    runtime: DataRuntime
    work: Path
    """What is finished in here belongs to exactly these inputs, settings and code."""

    @property
    def home(self) -> Path:
        """The folder of the dataset."""
        return prepared(self.dataset, self.root)

    @property
    def processes(self) -> int:
        """How many processes may work at once."""
        return self.runtime.workers

    def unfinished(self, table: str) -> Path:
        """Where the units of work on a table are collected, so that a later start goes on from there."""
        return self.work / table

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """A folder that takes the place of `home/name` when the block ends well. Unfinished work is then forgotten."""
        with replaced_atomically(self.home / name) as folder:
            yield folder
        self.finished()

    def finished(self) -> None:
        """Forget unfinished work: the step's outputs are in place."""
        shutil.rmtree(self.work.parent, ignore_errors=True)
        with suppress(OSError):  # another step of this dataset may have unfinished work
            self.work.parent.parent.rmdir()


def begin(name: str, dataset: str, root: Path, before: str | tuple[str, ...] = ()) -> DataStep:
    """The step `name`, which reads the folders `before`; unfinished work on other inputs, settings or code is thrown away."""
    pinned = read_json(root / "data" / "pins" / f"{dataset}.json")["steps"][name]
    folders = (before,) if isinstance(before, str) else before
    read = [file for folder in folders for file in sorted((prepared(dataset, root) / folder).rglob("*"))]
    # shards are known by the sha256 in their manifest
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
    """`before` and what `step` made of each table: its totals, and what it left out or changed; the shards are elsewhere."""
    told = {name: {key: value for key, value in table.items() if key != _SHARDS} for name, table in tables.items()}
    return [*before, {"step": step, "tables": told}]


def table_path(home: Path, name: str) -> Path:
    """Where the table `name` of a prepared dataset stands: a folder of shards, or a file."""
    return home / (name if name in CORPORA else f"{name}.parquet")


def run_step(step: Callable[[str, Path], None]) -> NoReturn:
    """Run `step(dataset, root)` for the dataset named on the command line.

    A user's mistake is printed as one message, `DataError: …`, whose further lines are indented, and ends with code 2.
    """
    if len(sys.argv) != 2:
        print(f"usage: python -m {step.__module__} DATASET", file=sys.stderr)
        raise SystemExit(2)
    try:
        with using_engine(load_runtime(Path.cwd()).engine):
            _importable(step)(sys.argv[1], Path.cwd())
    except CursusError as mistake:
        fail(mistake)
    except FileNotFoundError as missing:
        fail(DataError(f"{missing.filename or missing} is missing: run the steps before this one, 'dvc repro' does it"))
    except OSError as trouble:
        if trouble.errno != errno.ENOSPC:
            raise
        fail(StoreError(f"no space left on the device of {Path.cwd() / 'data'}: free some and run again"))
    raise SystemExit(0)


def _importable(step: Callable[[str, Path], None]) -> Callable[[str, Path], None]:
    """The same step from the module by its name: units of work travel by it, and `__main__` is another program elsewhere."""
    spec = sys.modules[step.__module__].__spec__
    return getattr(importlib.import_module(spec.name), step.__name__) if spec is not None else step


def fail(mistake: CursusError) -> NoReturn:
    """Print the mistake so that `tasks.datasets.prepared` can find it in a log, and end with code 2."""
    print(f"{type(mistake).__name__}: " + str(mistake).replace("\n", "\n  "), file=sys.stderr, flush=True)
    raise SystemExit(2) from mistake


def prepared(dataset: str, root: Path) -> Path:
    """The folder that holds the tables of a dataset, and the tables of the steps before them."""
    return root / "data" / "prepared" / dataset
