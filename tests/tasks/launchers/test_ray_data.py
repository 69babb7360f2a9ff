"""Data steps on a real Ray cluster of two nodes: the same bytes as by local processes, whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from pipelines.corpora.settings.runtime import load_runtime
from pipelines.corpora.steps.step import prepared
from pipelines.errors import DataError, RecipeError
from tests.pipelines.corpora.small_dataset import write_small_dataset
from tests.steps import ROOT
from tests.tasks.launchers.two_raylets import Cluster

STEPS = """
import os
import runpy
import sys
from pipelines.corpora.shards import folders

folders.ALONE_BELOW, folders.SHARD_BYTES = 0, 20_000  # a step would not ask for help with so little
for root in sys.argv[1:]:
    os.chdir(root)
    for step in ("pin", "collect", "clean"):
        sys.argv = [step, "small"]
        try:
            runpy.run_module(f"pipelines.corpora.steps.{step}", run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            assert not ended.code, ended.code
assert "ray" in sys.modules
"""
UNITS = """
import sys
from pathlib import Path
from pipelines.corpora.engines.ray import RayEngine
from pipelines.corpora.engines.work import run_units, using_engine
from pipelines.errors import DataError
from tests.tasks.launchers.test_ray_data import Failing, KilledOnce, Whose

home, units = Path(sys.argv[2]), [KilledOnce("a"), *(Whose(name) for name in "bcdefgh")]
with using_engine(RayEngine(address=sys.argv[1])):
    told = run_units(units, home, 4)
    try:
        run_units([*units, Failing("x"), Failing("y")], home, 4)
    except DataError as error:
        told.append(error)
Path(sys.argv[3]).write_text("\\n".join(map(str, told)))
"""


@dataclass(frozen=True)
class Whose:
    """A unit that says which process computed it."""

    name: str

    def __call__(self, folder: Path) -> None:
        (folder / "process").write_text(str(os.getpid()))


@dataclass(frozen=True)
class KilledOnce:
    """A unit whose worker is killed in the middle of it, the first time."""

    name: str

    def __call__(self, folder: Path) -> None:
        first = folder.parent / "killed"
        if not first.exists():
            first.touch()
            (folder / "half").write_text("written")
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / "process").write_text(str(os.getpid()))


@dataclass(frozen=True)
class Failing:
    """A unit that a user's mistake ends."""

    name: str

    def __call__(self, folder: Path) -> None:
        raise DataError(f"row 7 of {self.name} has no text")


def run(cluster: Cluster, script: str, *arguments: object) -> None:
    environment = {**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


def digests(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest() for path in files}


def test_both_engines_write_the_same_bytes(raylets: Cluster, tmp_path: Path) -> None:
    roots = [tmp_path / "here", tmp_path / "there"]
    for root in roots:
        write_small_dataset(root)
    with (roots[1] / "params.yaml").open("a") as params:
        params.write(f"runtime: {{engine: {{name: ray, address: '{raylets.address}'}}}}\n")
    run(raylets, STEPS, *roots)
    here, there = (digests(prepared("small", root)) for root in roots)
    assert here == there and "cleaned/general/00001.parquet" in here


def test_a_killed_worker_is_replaced_and_a_mistake_is_told_as_it_is(raylets: Cluster, tmp_path: Path) -> None:
    home = tmp_path / "home"
    run(raylets, UNITS, raylets.address, home, tmp_path / "told")
    *folders, mistake = (tmp_path / "told").read_text().splitlines()
    assert folders == [str(home / name) for name in "abcdefgh"]
    workers = {(home / name / "process").read_text() for name in "abcdefgh"}
    assert len(workers) > 1, "units were computed side by side"
    assert (home / "killed").exists() and not (home / "a" / "half").exists()
    assert mistake in ("row 7 of x has no text", "row 7 of y has no text")
    assert {path.name for path in home.iterdir() if path.is_dir() and path.name[0] != "."} == set("abcdefgh")


def test_a_cluster_without_an_address_is_refused(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(json.dumps({"runtime": {"engine": "ray"}}))
    with pytest.raises(
        RecipeError, match=r"runtime\.engine: .*engine 'ray', address: .*the address of a Ray cluster is host:port"
    ):
        load_runtime(tmp_path)
