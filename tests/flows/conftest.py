"""A checkout of its own: the code, the recipes, a small dataset of real text; nothing prepared, nothing trained."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from pipelines.lineage.provenance import Provenance
from pipelines.lineage.results import COMPILED
from pipelines.lineage.store import Store
from tasks.servers.temporary_server import PREFECT_SETTINGS, TemporaryServer
from tests.copied_sources import copy_code
from tests.made_once import made_once
from tests.pipelines.corpora.small_dataset import write_small_dataset
from tests.seeded_checkouts import seed, seed_prefect
from tests.shared_folders import share_compiled
from tests.steps import ROOT
from tests.tiny_regime import shorten

Cursus = Callable[..., "subprocess.CompletedProcess[str]"]
COMMAND = """
import sys
from flows.cli.app import app
try:
    app(sys.argv[1:], prog_name="cursus")
finally:
    heavy = sorted({"torch", "prefect", "mlflow", "transformers", "pandas"} & set(sys.modules))
    print("imported:", *heavy, file=sys.stderr)
"""
"""The command as it is installed, and what it imported."""


SECRET = "hunter2-of-the-first-run"
SECRETS = {"DB_PASS": SECRET, "AWS_SECRET_ACCESS_KEY": f"{SECRET}-key", "HF_TOKEN": f"{SECRET}-token"}
"""Secrets in the environment of the first run."""


class Ended(BaseModel):
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


class FirstRun(BaseModel):
    """A run of everything at tiny sizes, and what it left."""

    checkout: Path
    """Changed by the tests of `tiers.RUNS` that read it, which one worker runs; others take what is `copied`."""
    copied: Path
    """What the checkout held after the run, but for its state and its reports. Nobody changes it."""
    planned: Ended
    """The plan, printed before."""
    steps_before: list[Provenance]
    """What the store held then."""
    done: Ended
    made: list[Provenance]
    statuses: dict[str, int]
    """Status to number of MLflow's runs."""
    modes: dict[str, str]
    """Path below the state folder to its mode, but for files that are the store's as well."""


FIRST = "first.json"


@pytest.fixture(scope="package")
def first(tmp_path_factory: pytest.TempPathFactory) -> FirstRun:
    """The first run of a checkout: the only one that computes everything, once for all workers."""
    return FirstRun.model_validate_json((made_once(tmp_path_factory, "first-run", run_first) / FIRST).read_bytes())


def run_first(folder: Path) -> None:
    """Write a checkout into `folder`, run everything in it, and record what it left."""
    root, copied = write_checkout(folder / "checkout"), folder / "copied"
    cursus, store = command_line(root, users_shell(root) | SECRETS), Store(root / "data" / "store")
    planned = cursus("run", "--dry-run")
    before = list(store.all())
    done = cursus("run", "--threads", "1", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    state = root / ".cursus"
    modes = {
        path.relative_to(state).as_posix(): f"{status.st_mode & 0o777:o}"
        for path, status in ((path, path.lstat()) for path in (state, *state.rglob("*")))
        if path.is_dir() or (path.is_file() and status.st_nlink == 1)
    }
    with sqlite3.connect(root / ".cursus" / "mlflow.db") as database:
        statuses = dict(database.execute("select status, count(*) from runs group by status"))
    database.close()
    copied.mkdir()
    copy_computed(root, copied)
    first = FirstRun(
        checkout=root, copied=copied, planned=ended(planned), steps_before=before, done=ended(done),
        made=list(store.all()), statuses=statuses, modes=modes,
    )  # fmt: skip
    (folder / FIRST).write_text(first.model_dump_json(), encoding="utf-8")


def ended(done: subprocess.CompletedProcess[str]) -> Ended:
    return Ended(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


def write_prepared(root: Path, first: FirstRun, factory: pytest.TempPathFactory) -> Path:
    """A checkout of its own in `root`, with the data of the first run, and nothing trained."""
    return write_computed(root, first, factory, "store")


def write_computed(root: Path, first: FirstRun, factory: pytest.TempPathFactory, *without: str) -> Path:
    """A checkout of its own in `root`, with the data and the store of the first run, which nobody was told of."""
    copy_computed(first.copied, root, *without)
    seed(root, factory)  # last: the copied store already links to what is compiled
    return root


def copy_computed(source: Path, target: Path, *without: str) -> None:
    """Copy a checkout without its state, its reports and what is `without`."""
    left = shutil.ignore_patterns(".work", "tmp", *without)
    for entry in source.iterdir():  # `reports` is left at the top only: a package has that name, too
        if entry.name in (".cursus", "reports"):
            continue
        if entry.is_dir():
            shutil.copytree(entry, target / entry.name, ignore=left, dirs_exist_ok=True, symlinks=True)
        else:
            shutil.copy(entry, target / entry.name)


@pytest.fixture(scope="package")
def recorded_checkout(first: FirstRun, server: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of its own with what the first run computed, after a run that has recorded it in MLflow."""
    root = write_computed(tmp_path_factory.mktemp("recorded"), first, tmp_path_factory)
    done = command_line(root, users_shell(root) | server)("run", "--threads", "1", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return root


@pytest.fixture(scope="package")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which nothing was run, of all tests but those that override it."""
    return write_checkout(tmp_path_factory.mktemp("checkout"))


def write_checkout(root: Path) -> Path:
    """A checkout of its own in the folder `root`."""
    for name in ("pipelines", "tasks", "flows", "recipes", ".dvc"):
        copy_code(ROOT / name, root / name, "cache", "tmp", "config.local")
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(ROOT / name, root / name)
    shorten(root / "recipes")
    write_small_dataset(root)
    params = root / "params.yaml"
    params.write_text("default_dataset: small\n" + params.read_text(), encoding="utf-8")
    share_compiled(Store(root / "data" / "store").tokens / COMPILED)
    return root


@pytest.fixture(scope="package")
def environment(checkout: Path) -> dict[str, str]:
    return users_shell(checkout)


def users_shell(checkout: Path) -> dict[str, str]:
    """A user's shell: none of the settings that other tests make for themselves."""
    mine = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MLFLOW_", "CURSUS_"))
    }
    return {**mine, "CURSUS_ROOT": str(checkout), "COLUMNS": "200"}


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What points Prefect at one temporary server, for tests that are not about a run's own: each takes seconds."""
    home = tmp_path_factory.mktemp("prefect")
    seed_prefect(home, tmp_path_factory)
    with pytest.MonkeyPatch.context() as patch:
        for name in (*PREFECT_SETTINGS, "PREFECT_API_AUTH_STRING"):
            patch.setenv(name, "")
            patch.delenv(name)  # and what starts the server sets goes, too
        patch.setenv("PREFECT_HOME", str(home))
        started = TemporaryServer.start_if_needed(home)
    assert started is not None
    started.wait()
    yield started.clients
    started.stop()


@pytest.fixture(scope="package")
def cursus(checkout: Path, environment: dict[str, str], server: dict[str, str]) -> Cursus:
    """Run the command line of the checkout's own code, beside the shared server."""
    return command_line(checkout, environment | server)


def command_line(checkout: Path, environment: dict[str, str]) -> Cursus:
    """The command line of the code in `checkout`."""

    def run(*arguments: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", COMMAND, *arguments],
            cwd=checkout, env=environment, capture_output=True, text=True, timeout=timeout, umask=0o022,
        )  # fmt: skip

    return run
