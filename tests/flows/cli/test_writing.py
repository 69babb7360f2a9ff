"""A path that cannot be written, given to commands that write where the user says: one sentence, exit status 2."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from flows.cli.writing import writing
from pipelines.errors import CursusError
from pipelines.lineage.store import Store
from tasks.datasets.planning import store_folder
from tests.pipelines.lineage.exports import publish


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, below which there can be no folder: as no permission, this also holds for root."""
    monkeypatch.setenv("CURSUS_ROOT", str(tmp_path / "project"))
    (tmp_path / "file").touch()
    return tmp_path / "file"


def test_a_project_below_a_file_is_one_sentence(file: Path) -> None:
    done = CliRunner().invoke(app, ["init", str(file / "inside")])
    assert done.exit_code == 2 and done.stderr.startswith(f"error: {file}"), done.output
    assert f"{file / 'inside'} was not written" in done.stderr and done.stderr.count("\n") == 1


def test_an_archive_below_a_file_is_one_sentence(file: Path, tmp_path: Path) -> None:
    model = publish(Store(store_folder(tmp_path / "project")), "general")
    before = dict(os.environ)
    try:
        done = CliRunner().invoke(app, ["store", "export", model, str(file / "model.tar")])
    finally:  # the command sets the environment of its process
        os.environ.clear()
        os.environ.update(before)
    assert done.exit_code == 2 and f"{file / 'model.tar'} was not written" in done.stderr, done.output


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EXDEV])
def test_what_the_system_refuses_is_named(number: int, tmp_path: Path) -> None:
    with (
        pytest.raises(CursusError, match=f"{tmp_path}: {os.strerror(number)}; out was not written"),
        writing(Path("out")),
    ):
        raise OSError(number, os.strerror(number), str(tmp_path))


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full", "out"), FileNotFoundError(2, "none", "out"), OSError()]
)
def test_a_full_disk_and_a_bug_are_not_renamed(error: OSError) -> None:
    with pytest.raises(OSError) as raised, writing(Path("out")):
        raise error
    assert raised.value is error
