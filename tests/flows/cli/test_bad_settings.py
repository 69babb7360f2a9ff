"""Mistakes in params.yaml and in the files that it names, at the command line: one sentence, exit status 2, and nothing
was prepared."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from tests.pipelines.corpora.small_dataset import PARAMS, write_small_dataset
from tests.steps import RECIPES

Change = Callable[[Path], None]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the recipes and a small dataset."""
    shutil.copytree(RECIPES, tmp_path / "recipes")
    write_small_dataset(tmp_path)
    monkeypatch.setenv("CURSUS_ROOT", str(tmp_path))
    return tmp_path


def settings(old: str, new: str) -> Change:
    """The settings with one change."""
    assert old in PARAMS
    return lambda root: (root / "params.yaml").write_text(PARAMS.replace(old, new, 1)) and None


def a_name_in_latin_1(root: Path) -> None:
    try:
        (root / "texts" / "general" / os.fsdecode(b"caf\xe9.txt")).write_text("text")
    except OSError:
        pytest.skip("this file system keeps names in UTF-8 only")


MISTAKES: dict[str, tuple[Change, tuple[str, ...]]] = {
    "a dataset called 5": (settings("  small:", "  5:"), ("params.yaml:2: ", "the name 5 is no text")),
    "a dataset called like a list": (settings("  small:", "  [a]:"), ("params.yaml:2: ", "is no text")),
    "a name of a file that is not UTF-8": (a_name_in_latin_1, (r"'caf\\xe9.txt' is not UTF-8; rename it",)),
    "a dataset like a list": (settings("general: texts/general", "like: [small]"), (":3: datasets.small.like: ",)),
    "no task": (
        settings("task:\n", "tasks:\n"),
        (":6: ", "tasks.train: expected a mapping of keys to values, got 'texts/train.jsonl'"),
    ),
    "a budget that is a number": (settings("    task:", "    budget: {general: 5}\n    task:"), ("budget.general",)),
    "a budget without end": (
        settings("    task:", f"    budget: {{general: {{tokens: {10**18}}}}}\n    task:"),
        ("params.yaml: budget.general: stages.general.budget.tokens", "less than or equal to"),
    ),
    "an infinite limit": (
        settings("    task:", "    quality: {fertility: .inf}\n    task:"),
        (":5: ", "finite number"),
    ),
    "devices without end": (
        settings("datasets:", "training: {devices: 1000000000}\ndatasets:"),
        ("params.yaml:1: training.devices: ", "less than or equal to 1024"),
    ),
    "settings as a list": (
        settings("datasets:", "runtime: [a]\ndatasets:"),
        ("params.yaml:1: runtime: expected a map",),
    ),
    "a key given twice": (settings("    domain:", "    general: x\n    domain:"), ("params.yaml:4: ", "given twice")),
}


@pytest.mark.parametrize(("change", "says"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_settings_is_one_sentence(change: Change, says: tuple[str, ...], root: Path) -> None:
    change(root)
    answer = CliRunner().invoke(app, ["run", "--data", "small", "--dry-run"])
    assert answer.exit_code == 2, answer.exception
    (line,) = [line for line in answer.stderr.splitlines() if line != "regime on small: preparing the data"]
    assert line.startswith("error: ") and all(part in line for part in says), line
    assert not (root / "data" / "prepared").exists()
