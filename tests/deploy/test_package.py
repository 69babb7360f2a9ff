"""The package: a source distribution, the wheel made of it, and that wheel in an empty folder, through the tutorial."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.flows.test_tutorial import ENGLISH, INSTALL, SERVE, commands
from tests.steps import ROOT

BUILD = """
import sys
from setuptools import build_meta
print(getattr(build_meta, sys.argv[1])(sys.argv[2]))
"""
RECIPE = """\
name: own
description: as small as a model can be
like: regime
stages:
  vectors:
    tokenizer: {name: wordpiece, vocab_size: 512}
    limits: {unknown: 1.0}
    backbone: {name: transformer, architecture: bert, positions: 256,
               dims: {hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 64}}
    budget: {tokens: 8192}
  general: {schedule: {name: halving}, budget: {tokens: 8192, batch_tokens: 2048}}
  domain: null
  task: null
  scratch: null
  from_general: null
  from_domain: null
  small: null
  int8: null
  classify: {start: general, seeds: [0], budget: {epochs: 1, length: 64}}
  report: {kind: evaluate, start: [classify], corpus: task, suite: [scores]}
"""
PART = '''\
"""A rate that halves at every tenth of the budget."""

from __future__ import annotations

from pipelines.parts.schedules import Schedule


class Halving(Schedule, name="halving"):
    """Half the rate after each tenth of the steps."""

    def factor(self, step: int, total: int) -> float:
        return float(0.5 ** (10 * step // max(1, total)))
'''


class Installed(NamedTuple):
    """A virtual environment with the wheel, and an empty folder."""

    wheel: Path
    binaries: Path
    folder: Path
    environment: dict[str, str]

    def run(self, *command: str, within: str = ".") -> subprocess.CompletedProcess[str]:
        program = str(self.binaries / command[0])
        return subprocess.run(
            [program, *command[1:]],
            cwd=self.folder / within,
            env=self.environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )


def build(kind: str, source: Path, out: Path) -> Path:
    """A distribution made by the build backend, without a network."""
    done = subprocess.run([sys.executable, "-c", BUILD, kind, str(out)], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    home = tmp_path_factory.mktemp("package")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (home / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, home / "source" / name)
    (home / "out").mkdir()
    archive = build("build_sdist", home / "source", home / "out")
    with tarfile.open(archive) as packed:
        packed.extractall(home / "unpacked", filter="data")
    (unpacked,) = (home / "unpacked").iterdir()
    wheel = build("build_wheel", unpacked, home / "out")

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "venv")], check=True)
    binaries = home / "venv" / "bin"
    (packages,) = (home / "venv" / "lib").glob("python*/site-packages")
    # the libraries of the test environment, but not its installation of this checkout
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "--python", str(binaries / "python"), "install", "-q", "--no-deps"]
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PREFECT_", "MLFLOW_", "CURSUS_", "PYTHON"))
    }
    subprocess.run([*command, "--no-index", "--no-compile", str(wheel)], env=kept, check=True, capture_output=True)
    added = {path.name for path in packages.iterdir() if path.suffix != ".pth"}
    assert added == {"cursus", f"cursus-{importlib.metadata.version('cursus')}.dist-info"}, "one top-level package"
    (home / "empty").mkdir()
    path = f"{binaries}{os.pathsep}{kept['PATH']}"
    yield Installed(wheel, binaries, home / "empty", {**kept, "PATH": path, "COLUMNS": "200"})


def test_the_wheel_holds_the_tree_and_nothing_else(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = set(wheel.namelist())
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"cursus"}
    tree = {name.removeprefix("cursus/tree/") for name in names if name.startswith("cursus/tree/")}
    for room in ("flows", "tasks", "pipelines", "recipes"):
        expected = {
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / room).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
        }
        assert expected - tree == set(), room
    assert {"params.yaml", "dvc.yaml", "prefect.yaml", ".dvc/config", "requirements.lock"} <= tree
    assert not [name for name in tree if name.startswith(("tests/", "benchmarks/", "data/"))]


def test_an_empty_folder_is_no_project_and_commands_say_so(installed: Installed) -> None:
    assert installed.run("cursus", "--version").stdout == f"cursus {importlib.metadata.version('cursus')}\n"
    refused = installed.run("cursus", "run")
    assert refused.returncode == 2 and "is in no project: make one with `cursus init my-project`" in refused.stderr
    examined = installed.run("cursus", "doctor")
    assert examined.returncode == 0 and "this folder is in no project" in examined.stdout, examined.stdout
    others = "import importlib.util as u; print(*(u.find_spec(n) for n in ('flows', 'tasks', 'pipelines')))"
    assert installed.run("python", "-c", others).stdout.split() == ["None"] * 3, "others' names stay theirs"
    assert not list(installed.folder.iterdir())


@pytest.mark.timeout(900)
def test_the_tutorial_leads_from_an_empty_folder_to_a_model_with_own_texts_recipe_and_part(
    installed: Installed,
) -> None:
    """Every command of the tutorial, with less text and a smaller network than a reader's."""
    within, project = ".", installed.folder
    for command in commands(ENGLISH):
        words = shlex.split(command)
        if command == INSTALL:
            continue  # the fixture has done it
        if words[0] == "cd":
            within, project = words[1], installed.folder / words[1]
            _write_own(project)
            continue
        if command == SERVE:
            _served(installed, within)
            continue
        done = installed.run(*words, within=within)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if command == "cursus run":
            assert "registered own-text-classification version 1" in done.stdout
            (report,) = re.findall(r"^report +(\S+)$", done.stdout, re.MULTILINE)
            assert '<p class="lead decision">' in Path(report).read_text(encoding="utf-8")
            assert Path(report).with_name("report.zh.html").is_file()
        if command == "cursus check":
            assert "ok       parts/schedules/halving.py: halving" in done.stdout, done.stdout

    again = installed.run("cursus", "run", "--threads", "1", within=within)
    assert "everything is in the store: 4 steps cached" in again.stdout, again.stdout + again.stderr
    code = "import cursus; m = cursus.load(); print(m.task, *m.labels, *(p.answer for p in m.predict(['a text'])))"
    loaded = installed.run("python", "-c", code, within=within)
    task, *labels, answer = loaded.stdout.split()
    assert task == "text_classification" and labels == ["asyncio", "email", "unittest"] and answer in labels
    known = installed.run("cursus", "systems", "electra", within=within)
    assert "electra, stage classify" in known.stdout and "claim" in known.stdout


def _write_own(project: Path) -> None:
    texts = (project / "texts" / "domain.txt").read_text(encoding="utf-8").split("\n\n")
    (project / "texts" / "general.txt").write_text("\n\n".join(texts[::2]), encoding="utf-8")
    (project / "texts" / "domain.txt").write_text("\n\n".join(texts[1::2]), encoding="utf-8")
    params = (project / "params.yaml").read_text(encoding="utf-8")
    (project / "params.yaml").write_text(params.replace("[{documentation: general}]", "[texts/general.txt]"))
    (project / "recipes" / "own.yaml").write_text(RECIPE, encoding="utf-8")
    (project / "parts" / "schedules").mkdir()
    (project / "parts" / "schedules" / "halving.py").write_text(PART, encoding="utf-8")
    # a package of the project with the name of one of ours
    (project / "tasks").mkdir()
    (project / "tasks" / "__init__.py").write_text("raise ImportError('a package of the project')\n")


def _served(installed: Installed, within: str) -> None:
    """Start the server as the tutorial says, but at a free port, wait for its address, and stop it."""
    program, *words = shlex.split(SERVE)
    command = [str(installed.binaries / program), *words, "--port", "0"]
    folder, environment = installed.folder / within, installed.environment
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert any(line.startswith("Page ") for line in process.stdout)
        finally:
            process.send_signal(signal.SIGINT)
