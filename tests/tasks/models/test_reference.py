"""Names of models that are none: an empty one, and one that is longer than the name of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.errors import CursusError
from tasks.models.reference import names_folder


@pytest.mark.parametrize("reference", ["", " "])
@pytest.mark.parametrize(
    "command", [("predict", "a text", "--model"), ("serve",), ("export", "--to", "out"), ("neighbours", "a", "--model")]
)
def test_an_empty_name_is_not_the_current_folder(
    command: tuple[str, ...], reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURSUS_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*command, reference])
    assert done.exit_code == 2 and "the name of the model is empty" in done.stderr, done.output


def test_a_long_name_is_no_folder(tmp_path: Path) -> None:
    assert names_folder(str(tmp_path)) and not names_folder(str(tmp_path / "absent"))
    assert not names_folder("m" * 300)
    with pytest.raises(CursusError, match="is empty"):
        names_folder("")
