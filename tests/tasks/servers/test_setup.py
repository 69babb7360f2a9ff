"""What `make` installs: the lock covers everything that is declared, within its bounds, on any platform."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[3]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
DECLARED = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
LOCK: dict[str, str] = {
    canonicalize_name(name): version
    for name, _, version in (
        line.partition("==")
        for line in (REPOSITORY / "requirements.lock").read_text().splitlines()
        if line and not line.startswith("#")
    )
}


@pytest.mark.parametrize("line", sorted(set(DECLARED)))
def test_the_lock_holds_a_version_within_the_declared_bounds(line: str) -> None:
    requirement = Requirement(line)
    version = LOCK.get(canonicalize_name(requirement.name))
    assert version is not None, f"{requirement.name} is not in requirements.lock: renew it (its first lines say how)"
    assert requirement.specifier.contains(version, prereleases=True), f"requirements.lock has {version}: renew it"


def test_the_lock_binds_to_no_platform_and_no_place() -> None:
    # a build like +cpu or a path exists on one index, or one machine, only
    assert not [
        f"{name}=={version}" for name, version in LOCK.items() if not version or "+" in version or "/" in version
    ]
    assert not [name for name in LOCK if name.startswith(("nvidia", "cuda", "triton", "pywin"))]


@pytest.mark.parametrize("package", ["prefect", "sqlalchemy", "fastapi", "torch", "mlflow"])
def test_what_is_installed_is_what_the_lock_says(package: str) -> None:
    from importlib.metadata import version

    assert version(package).partition("+")[0] == LOCK[package]


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "-C", str(folder), "--no-print-directory", *words],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        (tmp_path / name).write_bytes((REPOSITORY / name).read_bytes())
    return tmp_path


def test_a_python_that_is_too_old_is_refused_before_anything_is_made(checkout: Path) -> None:
    old = checkout / "python-old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.18"\nexit 1\n')
    old.chmod(0o755)
    result = make(checkout, "run", f"PYTHON={old}")
    assert result.returncode != 0
    assert "Cursus needs Python 3.11 or newer" in result.stderr and "Python 3.9.18" in result.stderr
    assert not (checkout / ".venv").exists()


def test_an_installed_checkout_is_not_installed_again(checkout: Path) -> None:
    (checkout / ".venv").mkdir()
    for stamp in ("run", "minilm", "test"):
        (checkout / ".venv" / f".installed-{stamp}").touch()
    first = make(checkout, "run", "BUDGET=hour", "START=minilm", "DATA=reviews", "--dry-run")
    assert first.stdout.strip() == ".venv/bin/cursus run --variant hour --variant minilm --data reviews"
    os.utime(checkout / "requirements.lock", (2**31, 2**31))
    assert "pip install" in make(checkout, "run", "--dry-run").stdout


def test_lineage_is_that_of_the_latest_run_unless_a_model_is_named(checkout: Path) -> None:
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / ".installed-run").touch()
    os.utime(checkout / ".venv" / ".installed-run", (2**31, 2**31))
    assert make(checkout, "lineage", "--dry-run").stdout.strip() == ".venv/bin/cursus lineage"
    named = make(checkout, "lineage", "MODEL=docstrings", "--dry-run")
    assert named.stdout.strip() == ".venv/bin/cursus lineage docstrings"
