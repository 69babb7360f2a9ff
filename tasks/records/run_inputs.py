"""The files that a plan and the check of its data depend on, gathered while both are made.

    inputs    code, recipes, settings, packages, sources     unchanged since before the process read any of them
    data      pins, prepared tables, dvc.lock                unchanged since before DVC last checked them
    results   the plan's artifacts                           unchanged since before their digests were last compared

Known folders are listed whole, so that a new file is noticed as well; besides, every file and folder counts that this
process has read, wherever it is, and every module that it has imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from pipelines.components.own_parts import PARTS
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.lineage.file_states import FileState, changed_before, latest_trusted_time, states_of, tree
from pipelines.lineage.store import Store
from pipelines.recipe.folders import RECIPES
from pipelines.recipe.plan import Plan
from pipelines.recipe.starts import Checkpoint
from pipelines.reports.anchors import ANCHORS
from pipelines.shipped import shipped_folder
from tasks.datasets.checked_data import SETTINGS, data_paths
from tasks.datasets.source_files import has_remote_sources, local_source_files
from tasks.decisions.journal import PromotionJournal
from tasks.environment import private_state_folder, state_folder

CODE = ("pipelines", "tasks", "flows")
MOST_FILES = 50_000
"""Files that a record depends on; of more, none is written: comparing their states would take as long as planning."""
CLOCK_ERROR = 2_000_000_000
"""Nanoseconds by which the system may misstate when a process began: it counts whole seconds since its own start."""
INSTALLED = (".dist-info", ".egg-info")
SYSTEM = ("/proc/", "/sys/", "/dev/")
_MODES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class RunInputs:
    """Begins to gather when it is made. Files that change meanwhile are not trusted, and then nothing is recorded."""

    def __init__(self, root: Path, store: Store) -> None:
        self.root, self.store = root, store
        self._read: set[str] = set()
        self._gathering = True
        began = int(psutil.Process().create_time() * 1_000_000_000) - CLOCK_ERROR
        self._began = min(began, latest_trusted_time(private_state_folder(root)))
        self._known = states_of(self._known_paths())
        self._data: dict[str, FileState] = {}
        self._data_time = 0
        sys.addaudithook(self._note)

    def check_data(self, dataset: str) -> None:
        """Note the state of the prepared data of `dataset`: to be called before DVC checks them."""
        self._data_time = latest_trusted_time(private_state_folder(self.root))
        self._data = states_of(data_paths(dataset, self.root))

    def states(self, plan: Plan, dataset: str) -> dict[str, FileState] | None:
        """Path → state of all files on which `plan` over `dataset` depends, each of whose steps is in the store; None
        where one of them may have changed since it was read or checked. Ends the gathering."""
        self._gathering = False
        settings, imported = load_dataset(dataset, self.root), [*_imported()]
        settled = not PromotionJournal(self.store).pending() and all(map(os.path.exists, imported))
        # parts read files by paths relative to the current folder, or else those that come with the code
        here = Path.cwd() == self.root.resolve()
        if (
            has_remote_sources(settings, self.root)
            or not (settled and here)
            or self._known != states_of(self._known_paths())
        ):
            return None
        sources = map(str, local_source_files(settings, self.root))
        inputs = {*self._known, *imported, *self._outside(), *sources, *_checkpoints(plan)}
        data = data_paths(dataset, self.root)
        time = latest_trusted_time(private_state_folder(self.root))
        results = [path for step in plan.steps for path in tree(str(self.store.folder(step.fingerprint)))]
        every = sorted({*inputs, *data, *results})
        if len(every) > MOST_FILES:
            return None
        states = states_of(every)
        files = [path for path in inputs if path not in self._known or os.path.isfile(path)]
        checked = {path: states[path] for path in data} == self._data
        if not (checked and _all_before(files, self._began) and _all_before(data, self._data_time)):
            return None
        verified = all(self.store.get(step.fingerprint) for step in plan.steps)
        return states if verified and _all_before(results, time) else None

    def _known_paths(self) -> list[str]:
        """What is part of every plan: it is listed before anything is read."""
        roots = list(dict.fromkeys([self.root.resolve(), shipped_folder().resolve()]))
        paths = [str(root / name) for root in roots for name in (*SETTINGS, ANCHORS)]
        folders = [root / name for root in roots for name in (*CODE, RECIPES, PARTS)]
        paths += [path for folder in folders for path in tree(str(folder))]
        # which packages there are is a circumstance of the record
        for folder in filter(os.path.isdir, sys.path):
            packages = [name for name in os.listdir(folder) if name.endswith(INSTALLED)]
            paths += [os.path.join(folder, name, "METADATA") for name in packages]
        return [*paths, str(PromotionJournal(self.store).path)]

    def _outside(self) -> Iterator[str]:
        """What was read, except what has a rule of its own, and what this process or DVC writes."""
        data, own = self.root / "data", state_folder(self.root)
        left = (own, self.root / "reports", self.root / ".dvc" / "tmp", self.root / ".dvc" / "cache", data / "pins")
        folders = tuple(f"{folder}{os.sep}" for folder in (*left, data / "prepared", self.store.root))
        others = (self.root, self.root / "dvc.lock", data, data / "prepared", self.store.root)
        single = {*(str(path) for path in (*left, *others)), *map(os.path.abspath, sys.path)}
        for path in self._read:
            if not path.startswith((*SYSTEM, *folders)) and path not in single and not path.endswith(".pyc"):
                yield path

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note what is opened to be read, and which folders are listed (an audit hook of the interpreter)."""
        if self._gathering and event in ("open", "os.listdir", "os.scandir"):
            path = arguments[0]
            if isinstance(path, (str, bytes)) and not (event == "open" and (arguments[2] or 0) & _MODES):
                with suppress(OSError):  # the current folder is gone
                    self._read.add(os.path.abspath(os.fsdecode(path)))


def _all_before(paths: list[str], time: int) -> bool:
    return all(changed_before(path, time) for path in paths)


def _imported() -> Iterator[str]:
    """Files of the modules of this process."""
    for module in list(sys.modules.values()):
        if isinstance(file := getattr(module, "__file__", None), str):
            yield os.path.abspath(file)


def _checkpoints(plan: Plan) -> Iterator[str]:
    """Files of the checkpoints that steps start from, and the folders that their names would be."""
    for step in plan.steps:
        if step.checkpoint is not None:
            yield from tree(str(step.checkpoint))
        if isinstance(step.stage.start, Checkpoint):
            yield os.path.abspath(os.path.expanduser(step.stage.start.checkpoint))
