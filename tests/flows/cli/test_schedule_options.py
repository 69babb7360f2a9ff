"""`cursus schedule`: options that would be ignored are refused, before a server is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--remove", "nightly"], "--remove needs a deployment: `cursus schedule regime --remove …`"),
        (["--cron", "0 2 * * *"], "--cron needs a deployment"),
        (["--smoke"], "--smoke needs a deployment"),
        (["regime", "--data", "reviews"], "--data is for a new schedule: add --cron"),
        (["regime", "--smoke"], "--smoke is for a new schedule: add --cron"),
        (["regime", "--remove", "nightly", "--cron", "0 2 * * *"], "--remove takes no --cron"),
        (["regime", "--cron", "0 2 * * *", "--data", "reviews"], "the servers do not run"),
        (["regime", "--remove", "nightly"], "the servers do not run"),
        ([], "the servers do not run"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURSUS_ROOT", str(tmp_path))
    done = CliRunner().invoke(app, ["schedule", *arguments])
    assert done.exit_code == 2 and sentence in done.stderr, done.output
