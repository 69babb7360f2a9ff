"""The tutorial is true: both languages have the same commands, links and settings, and what sentences name exists.

tests/deploy/test_package.py runs its commands, one after the other, in a new project.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.corpora.settings.dataset import load_settings
from tests.steps import ROOT

PAGES = {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("tutorial.md", "zh/tutorial.md")}
ENGLISH, CHINESE = PAGES.values()
INSTALL = "pip install cursus"
SERVE = "cursus serve"


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
