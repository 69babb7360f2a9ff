"""`cursus doctor`, `--version`, completion in a shell, and the listing of recipes."""

from __future__ import annotations

import importlib.metadata
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from tasks.diagnosis import machine, packages, project
from tasks.diagnosis.check import State
from tests.steps import ROOT, SHIPPED, shipped

ALL = ("python", "versions", "lock", "compiler", "disk", "git", "project", "permissions", "ports")


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The project is this checkout."""
    monkeypatch.setenv("CURSUS_ROOT", str(ROOT))


def doctor(status: int) -> dict[str, tuple[str, str]]:
    """Subject → state and sentence."""
    shown = CliRunner().invoke(app, ["doctor"])
    assert shown.exit_code == status, shown.output
    rows = [line.split(maxsplit=2) for line in shown.output.splitlines()]
    return {subject: (state, sentence) for state, subject, sentence in rows}


def test_this_installation_can_run() -> None:
    checks = doctor(0)
    assert tuple(checks) == ALL
    assert not [checks[name] for name in checks if checks[name][0] == "problem"]
    assert sys.executable in checks["python"][1] and "datasets" in checks["project"][1]


def test_a_mistake_in_the_settings_is_a_problem_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "params.yaml").write_text("datasets:\n  mine: {lang: en}\n", encoding="utf-8")
    monkeypatch.setenv("CURSUS_ROOT", str(tmp_path))
    state, sentence = doctor(1)["project"]
    assert state == "problem" and sentence.startswith("params.yaml:2: datasets.mine")


def test_packages_that_are_missing_or_too_old_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    requires = ["numpy<1", "no-such-package-anywhere>=2", "torch; extra == 'other'", "typer"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: requires)
    check = packages.versions()
    assert check.state is State.PROBLEM
    assert "numpy" in check.sentence and "no-such-package-anywhere is not installed" in check.sentence
    assert "torch" not in check.sentence and "typer" not in check.sentence


def test_packages_beside_the_lock_are_named(tmp_path: Path) -> None:
    assert packages.lock(tmp_path).state is State.NOTE
    installed = importlib.metadata.version("numpy")
    (tmp_path / "requirements.lock").write_text(f"numpy=={installed}  # as it is\nno-such-package==1\n")
    assert packages.lock(tmp_path).state is State.OK
    (tmp_path / "requirements.lock").write_text("numpy==0.1\n")
    check = packages.lock(tmp_path)
    assert check.state is State.NOTE and f"numpy {installed} instead of 0.1" in check.sentence


def test_a_full_disk_a_missing_compiler_and_git_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LEAST_FREE", 2**62)
    check = machine.disk(tmp_path / "not" / "there")
    assert check.state is State.PROBLEM and "free some space" in check.sentence and str(tmp_path) in check.sentence
    assert machine.git(tmp_path).state is State.NOTE, "no repository"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.compiler().state is machine.git(tmp_path).state is State.NOTE


@pytest.fixture
def taken() -> Iterator[int]:
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_port_of_another_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    monkeypatch.setattr(project, "PORTS", {"Prefect": taken})
    check = project.ports(tmp_path)
    assert check.state is State.NOTE and f"port {taken} (Prefect)" in check.sentence


def test_an_account_that_others_can_read_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / ".cursus" / "account"
    file.parent.mkdir()
    file.write_text("cursus:a-long-enough-password\n")
    file.chmod(0o644)
    check = project.permissions(tmp_path)
    assert check.state is State.PROBLEM and f"chmod 600 {file}" in check.sentence
    file.chmod(0o600)
    assert project.permissions(tmp_path).state is State.OK


def test_the_version_is_that_of_the_installation() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert shown.exit_code == 0 and shown.output == f"cursus {importlib.metadata.version('cursus')}\n"


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("cursus doc", "doctor"), ("cursus run electr", "electra"), ("cursus data zh_", "zh_reviews")],
)
def test_a_shell_completes_commands_recipes_and_datasets(typed: str, completed: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_CURSUS_COMPLETE": "complete_bash"}
    code = "from flows.cli.app import app; app(prog_name='cursus')"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | words, capture_output=True, text=True)
    assert completed in done.stdout.split(), done.stderr


def test_every_recipe_is_described_in_one_line() -> None:
    shown = CliRunner().invoke(app, ["recipes"])
    assert shown.exit_code == 0, shown.output
    for name, line in zip(SHIPPED.names(), shown.output.splitlines(), strict=True):
        recipe = shipped(name)
        assert recipe.description, f"{name}: say in `description` what it trains or compares"
        assert line.split()[0] == name and recipe.description in line and recipe.paper in line and len(line) <= 200
