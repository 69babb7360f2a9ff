"""The README is true: its commands exist, its block is accepted, its links and pictures are there."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.corpora.settings.dataset import load_settings
from pipelines.recipe.load import Library
from tasks.tracking.registry import CANDIDATE

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line.partition("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.strip()
]


def _make_commands() -> list[str]:
    inline = re.findall(r"`(make [^`]+)`", README)
    return sorted({command for command in [*COMMANDS, *inline] if command.startswith("make ")})


def _cursus_commands() -> list[list[str]]:
    inline = re.findall(r"`(?:\.venv/bin/)?(cursus [^`]+)`", README)
    written = [re.sub(r"^\.venv/bin/", "", command) for command in [*COMMANDS, *inline]]
    return [shlex.split(command)[1:] for command in written if command.startswith("cursus ")]


@pytest.mark.parametrize("command", _make_commands())
def test_every_make_command_has_its_target(command: str) -> None:
    done = subprocess.run([*shlex.split(command), "--dry-run"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_make_run_understands_the_three_budgets() -> None:
    variants = re.findall(
        r"^  (\w+):", (ROOT / "recipes" / "regime.yaml").read_text().partition("\nvariants:")[2], re.MULTILINE
    )
    named = re.findall(r"make run (?:BUDGET|START)=(\w+)", README)
    assert named
    assert set(named) <= set(variants)
    for name in named:
        Library(ROOT / "recipes").load("regime", [name])


@pytest.mark.parametrize("arguments", _cursus_commands(), ids=" ".join)
def test_every_cursus_command_exists_with_its_options(arguments: list[str]) -> None:
    options = [word for word in arguments if word.startswith("--")]
    shown = CliRunner().invoke(app, [arguments[0], "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    for option in options:
        assert option in shown.output


def test_the_block_for_your_own_text_is_accepted(tmp_path: Path) -> None:
    block = next(block for block in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL) if "datasets:" in block)
    (tmp_path / "params.yaml").write_text(f"default_dataset: mine\n{block}", encoding="utf-8")
    mine = load_settings(tmp_path)["mine"]
    Library(ROOT / "recipes").load(mine.recipe, mine.variants, mine.budget)


def test_the_served_model_is_the_one_that_is_registered() -> None:
    assert f"models:/topics-text-classification@{CANDIDATE}" in README


def test_links_and_pictures_are_there() -> None:
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", README) if not target.startswith("http")]
    assert len(targets) > 5
    for target in targets:
        place = ROOT / target
        # a decision may be named by its number
        assert place.exists() or list(place.parent.glob(f"{place.name}*")), target
