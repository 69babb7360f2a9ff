"""The README is true in both languages: its block is accepted, its links and pictures are there.

test_documented_commands.py looks up the commands of README and of all pages.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from pipelines.corpora.settings.dataset import load_settings
from pipelines.recipe.load import Library
from tasks.tracking.registry import CANDIDATE

ROOT = Path(__file__).parents[2]
READMES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")}
README, CHINESE = READMES.values()


def _commands(page: str) -> list[str]:
    return [
        line.partition("  #")[0].strip()
        for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
        for line in block.splitlines()
        if line.strip()
    ]


def _links(page: str) -> list[str]:
    return [target for target in re.findall(r"\]\(([^)#]+)\)", page) if not target.startswith("http")]


COMMANDS = _commands(README)


def _make_commands() -> list[str]:
    inline = re.findall(r"`(make [^`]+)`", README)
    return sorted({command for command in [*COMMANDS, *inline] if command.startswith("make ")})


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


@pytest.mark.parametrize("name", READMES)
def test_the_block_for_your_own_text_is_accepted(name: str, tmp_path: Path) -> None:
    block = next(block for block in re.findall(r"```yaml\n(.*?)```", READMES[name], re.DOTALL) if "datasets:" in block)
    (tmp_path / "params.yaml").write_text(f"default_dataset: mine\n{block}", encoding="utf-8")
    mine = load_settings(tmp_path)["mine"]
    Library(ROOT / "recipes").load(mine.recipe, mine.variants, mine.budget)


def test_the_served_model_is_the_one_that_is_registered() -> None:
    assert f"models:/topics-text-classification@{CANDIDATE}" in README


@pytest.mark.parametrize("name", READMES)
def test_links_and_pictures_are_there(name: str) -> None:
    targets = _links(READMES[name])
    assert len(targets) > 5
    for target in targets:
        place = ROOT / target
        # a decision may be named by its number
        assert place.exists() or list(place.parent.glob(f"{place.name}*")), target


def test_both_languages_have_the_same_commands_links_and_recipes() -> None:
    assert _commands(CHINESE) == COMMANDS
    others = [
        sorted(link.replace("docs/zh/", "docs/") for link in _links(page) if link not in READMES)
        for page in READMES.values()
    ]
    assert others[0] == others[1], "in Chinese, a link may lead to the Chinese page of the same name"
    assert [_links(page)[0] for page in READMES.values()] == ["README.zh.md", "README.md"]
    recipes, translated = (re.findall(r"^\| `.*$", page, re.MULTILINE) for page in READMES.values())
    assert [re.findall(r"`[^`]+`", row) for row in recipes] == [re.findall(r"`[^`]+`", row) for row in translated]
    assert README.count("\n## ") == CHINESE.count("\n## ")
