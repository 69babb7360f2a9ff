"""A project of another user around the current folder: nothing of it is imported, unless it is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.projects.creation import create
from tasks.projects.ownership import EXECUTED, foreign_entry
from tests.steps import ROOT

OTHER = 12345
"""A user who is neither root nor the one of the tests."""
PART = "from pathlib import Path\nPath({marker!r}).touch()\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose part leaves a file when it is imported, and a folder inside."""
    root = tmp_path / "project"
    create(root, "empty")
    (root / "parts" / "schedules").mkdir()
    marker = str(tmp_path / "imported")
    (root / "parts" / "schedules" / "left.py").write_text(PART.format(marker=marker), encoding="utf-8")
    (root / "inside").mkdir()
    root.chmod(0o1777)
    return root


def command(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("CURSUS_ROOT", "SUDO_UID")}
    return subprocess.run(
        [sys.executable, "-m", "cursus", *arguments], cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), **variables}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_parts_of_another_users_project_are_not_imported(project: Path, tmp_path: Path) -> None:
    os.chown(project / "params.yaml", OTHER, -1)
    done = command(project / "inside", "check")
    assert done.returncode == 2 and f"{project / 'params.yaml'} belongs to another user" in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1 and not (tmp_path / "imported").exists()
    api = subprocess.run(
        [sys.executable, "-c", "import cursus\ntry: cursus.lineage('x')\nexcept cursus.CursusError as e: print(e)"],
        cwd=project, env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}, capture_output=True, text=True,
    )  # fmt: skip
    assert "belongs to another user" in api.stdout, api.stderr
    command(project, "check", CURSUS_ROOT=str(project))
    assert (tmp_path / "imported").exists(), "the project is named"
    (tmp_path / "imported").unlink()
    command(project, "check", SUDO_UID=str(OTHER))
    assert (tmp_path / "imported").exists(), "the project of the user of sudo"


def test_every_entry_that_decides_what_is_executed_is_looked_at(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert foreign_entry(project) is None
    assert {(project / name).exists() for name in EXECUTED} == {True}, "what `cursus init` makes"
    if os.geteuid() != 0:
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)
        assert foreign_entry(project) == project / EXECUTED[0]
        return
    for name in EXECUTED:
        os.chown(project / name, OTHER, -1)
        assert foreign_entry(project) == project / name
        project.chmod(0o755)
        assert foreign_entry(project) is None, "only its owner puts anything there: of a team, or mounted"
        project.chmod(0o1777)
        os.chown(project / name, 0, -1)
