"""A DVC remote: in a fresh clone, `dvc pull` brings the tables, and nothing is computed again."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from moto.server import ThreadedMotoServer

from tasks.datasets.prepared import open_prepared
from tests.tasks.datasets.test_datasets import SHELL, ran

IN_GIT = ("params.yaml", "dvc.yaml", "dvc.lock", "data/pins", "texts", "recipes", "pipelines", "tasks", ".dvcignore")
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
WITHOUT_S3 = pytest.mark.skipif(importlib.util.find_spec("dvc_s3") is None, reason="dvc-s3 is not installed")


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a server that speaks S3, with the bucket `storage`."""
    for name, value in {**KEYS, "AWS_CONFIG_FILE": str(tmp_path / "none")}.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    fsspec.filesystem("s3", skip_instance_cache=True, endpoint_url=f"http://{host}:{port}").mkdir("storage")
    yield f"http://{host}:{port}"
    server.stop()


def run(folder: Path, *command: str) -> str:
    environment = {**SHELL, **{name: os.environ[name] for name in os.environ if name.startswith("AWS_")}}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def dvc(folder: Path, *arguments: str) -> str:
    return run(folder, sys.executable, "-m", "dvc", *arguments)


@pytest.mark.parametrize("kind", ["folder", pytest.param("s3", marks=WITHOUT_S3)])
def test_a_clone_pulls_the_tables_and_computes_nothing(
    kind: str, checkout: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    shutil.copytree(checkout, origin, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "tmp"))
    config = origin / ".dvc" / "config"
    config.write_text(config.read_text(encoding="utf-8").replace("no_scm = true", ""), encoding="utf-8")
    run(origin, "git", "init", "--quiet")
    address = str(tmp_path / "storage") if kind == "folder" else "s3://storage/folder"
    dvc(origin, "remote", "add", "--default", "storage", address)
    if kind == "s3":
        dvc(origin, "remote", "modify", "storage", "endpointurl", request.getfixturevalue("bucket"))
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    run(origin, "git", "add", "--force", *IN_GIT, ".dvc/config", ".dvc/.gitignore")
    run(origin, "git", *author, "commit", "--quiet", "-m", "Data")
    dvc(origin, "push", "--quiet")

    run(tmp_path, "git", "clone", "--quiet", str(origin), str(clone))
    assert not (clone / "data" / "prepared").exists()
    dvc(clone, "pull", "--quiet")
    assert ran(clone) == []
    assert run(clone, "git", "status", "--porcelain", "--untracked-files=no") == "", "the same lock and pins"
    assert open_prepared("small", clone).digests == open_prepared("small", checkout).digests

    tables = "data/prepared/small/summary.json"
    shown = json.loads(dvc(clone, "metrics", "show", "--json", tables))
    assert shown[""]["data"][tables]["data"]["tables"]["test"]["documents"] == 48
    params = clone / "params.yaml"
    params.write_text(params.read_text(encoding="utf-8").replace("per_class: 8", "per_class: 7"), encoding="utf-8")
    changed = json.loads(dvc(clone, "params", "diff", "--json"))
    assert changed["params.yaml"]["datasets.small.task.labels_per_class"]["new"] == 7
    dry = dvc(clone, "repro", "--dry", "card@small")
    assert "Running stage 'pin@small'" in dry and "Stage 'collect@small' didn't change" in dry
    plots = dvc(clone, "plots", "show", "--json", "data/prepared/small/labels.csv")
    assert "unittest" in plots
