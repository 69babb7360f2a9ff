"""The tutorial is true: both languages have the same commands, and they run, one after the other, in a new project."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.corpora.settings.dataset import load_settings
from tests.deploy.test_package import RECIPE
from tests.steps import ROOT

PAGES = {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("tutorial.md", "zh/tutorial.md")}
ENGLISH, CHINESE = PAGES.values()
INSTALL = "pip install cursus"
SERVE = "cursus serve"
SMALL = RECIPE.replace("schedule: {name: halving}", "schedule: {name: linear}")


def commands(page: str) -> list[str]:
    """The lines of its shell blocks."""
    return [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines() if line]


def links(page: str) -> list[str]:
    return re.findall(r"\]\(([^)#]+)\)", page)


def test_both_languages_say_the_same() -> None:
    assert commands(ENGLISH) == commands(CHINESE) and commands(ENGLISH)[0] == INSTALL
    assert ENGLISH.count("\n## ") == CHINESE.count("\n## ")
    first, second = ([Path(link).name for link in links(page)] for page in PAGES.values())
    assert first == second


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / "docs" / name
    assert len(links(PAGES[name])) > 10
    assert [link for link in links(PAGES[name]) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("name", PAGES)
def test_the_block_of_settings_is_accepted(name: str, tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGES[name], re.DOTALL)
    (tmp_path / "params.yaml").write_text(f"default_dataset: own\n{block}", encoding="utf-8")
    assert load_settings(tmp_path)["own"].recipe == "own"


@pytest.mark.parametrize("command", re.findall(r"`(cursus [^`]+)`", ENGLISH))
def test_commands_in_sentences_exist(command: str) -> None:
    name = shlex.split(command)[1]
    assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MLFLOW_", "CURSUS_"))
    }
    yield {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}",
        "COLUMNS": "200",
        "LANG": "C.UTF-8",
    }


@pytest.mark.slow_tier
def test_every_command_runs_in_a_new_project(environment: dict[str, str], tmp_path: Path) -> None:
    """With less text and a smaller network than a reader's, so that it takes a minute."""
    folder = tmp_path
    for command in commands(ENGLISH):
        words = shlex.split(command)
        if command == INSTALL:
            continue  # tests/deploy/test_package.py does it
        if words[0] == "cd":
            folder = folder / words[1]
            _shrink(folder)
        elif command == SERVE:
            _served(folder, environment)
        else:
            done = subprocess.run(
                words, cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            if command == "cursus run":
                assert "registered own-text-classification version 1" in done.stdout
                (report,) = re.findall(r"^report +(\S+)$", done.stdout, re.MULTILINE)
                assert '<p class="lead decision">' in Path(report).read_text(encoding="utf-8")
                assert Path(report).with_name("report.zh.html").is_file()


def _shrink(project: Path) -> None:
    texts = (project / "texts" / "domain.txt").read_text(encoding="utf-8").split("\n\n")
    for name, some in (("general", texts[::2]), ("domain", texts[1::2])):
        (project / "texts" / f"{name}.txt").write_text("\n\n".join(some), encoding="utf-8")
    params = project / "params.yaml"
    params.write_text(params.read_text(encoding="utf-8").replace("[{documentation: general}]", "[texts/general.txt]"))
    (project / "recipes" / "own.yaml").write_text(SMALL, encoding="utf-8")


def _served(project: Path, environment: dict[str, str]) -> None:
    """Start the server as the page says, but at a free port, wait for its address, and stop it."""
    command = [*shlex.split(SERVE), "--port", "0"]
    with subprocess.Popen(command, cwd=project, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert any(line.startswith("Page ") for line in process.stdout)
        finally:
            process.send_signal(signal.SIGINT)
