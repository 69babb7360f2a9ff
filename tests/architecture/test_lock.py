"""`make lock`, by the real pip, against a folder of small packages."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.architecture.lock import LOCK, main

PROJECT = """
[project]
name = "small"
dependencies = ["torch==2.13.0", "first>=1,<2"]
[project.optional-dependencies]
extra = ["Second_one"]
"""
COMMENT = "# how to renew it\n"


def wheel(folder: Path, name: str, version: str, *needs: str) -> None:
    """A package without modules."""
    info = f"{name}-{version}.dist-info"
    metadata = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {need}" for need in needs)]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{info}/METADATA", "\n".join(["Metadata-Version: 2.1", *metadata, ""]))
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / LOCK).write_text(f"{COMMENT}first==1.0\ngone==1.0\n")
    index = tmp_path / "index"
    index.mkdir()
    wheel(index, "torch", "2.13.0+cpu", "nvidia-kernels")
    for version in ("1.0", "1.2", "2.0"):
        wheel(index, "first", version, "below>=1")
    wheel(index, "Second_one", "3.0")
    wheel(index, "below", "1.5", "pip")
    wheel(index, "pip", "99.0")
    wheel(index, "nvidia_kernels", "1.0")
    return tmp_path


def test_the_newest_versions_within_the_bounds_are_locked(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(root, ["--isolated", "--no-index", "--find-links", str(root / "index")]) == 0
    locked = "below==1.5\nfirst==1.2\nSecond_one==3.0\ntorch==2.13.0\n"
    assert (root / LOCK).read_text() == COMMENT + locked, "without a build of torch, and what a build for GPUs needs"
    shown = capsys.readouterr().out
    assert "- gone==1.0" in shown and "+ first==1.2" in shown and "4 packages, 4 of them changed or new" in shown


def test_without_an_index_the_lock_stays(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (root / LOCK).read_text()
    assert main(root, ["--isolated", "--no-index"]) == 1
    assert (root / LOCK).read_text() == before
    assert "stays as it is, because no index gives its packages" in capsys.readouterr().err
