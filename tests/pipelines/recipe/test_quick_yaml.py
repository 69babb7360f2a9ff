"""The quick reader of recipes reads what the careful one reads, or leaves it to that one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from pipelines.components.plain_yaml import read_yaml
from pipelines.errors import RecipeError
from pipelines.recipe.quick_yaml import read_quickly
from pipelines.recipe.recipe_file import KeyPath, _plain
from tests.steps import ROOT

RECIPES = sorted((ROOT / "recipes").rglob("*.yaml"))
INSERTED = (
    *(" ", "  ", "\n", ":", "- ", "#", " #", "'", "''", '"', "{", "}", "[", "]", ",", "|", ">", "\\", "@", "`", "%"),
    *("~", "null", "yes", "on", "True", "1e-3", "0x1f", "0o7", "007", "1_000", ".5", "5.", "-0", "+1", "1:30", ".inf"),
    *("= ", "NaN", "2001-01-01", "&a ", "*a", "!!str ", "? ", "\t", "é", "中", "\u2028", "\x85", "---\n"),
    *("...\n", "<<: ", "- - "),
)  # fmt: skip


def read_carefully(text: str, file: Path) -> tuple[Any, dict[KeyPath, int]] | None:
    """The values and lines by ruamel's round-trip reader; None for a mistake, or what is no mapping."""
    file.write_text(text, encoding="utf-8")
    locations: dict[KeyPath, str] = {(): f"{file}:1"}
    try:
        values = _plain(read_yaml(file, "a recipe"), (), file, locations)
    except RecipeError:
        return None
    return (values, {key: int(where.rpartition(":")[2]) for key, where in locations.items()})


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_recipes_are_read_alike(recipe: Path, tmp_path: Path) -> None:
    text = recipe.read_text(encoding="utf-8")
    quick = read_quickly(text)
    assert quick is None or repr(quick) == repr(read_carefully(text, tmp_path / "recipe.yaml"))


def test_nearly_all_recipes_are_read_quickly() -> None:
    read = [read_quickly(recipe.read_text(encoding="utf-8")) is not None for recipe in RECIPES]
    assert sum(read) >= 0.95 * len(read)


def test_changed_recipes_are_read_alike_or_not_at_all(tmp_path: Path) -> None:
    texts, chance, quick = [recipe.read_text(encoding="utf-8") for recipe in RECIPES], random.Random(0), 0
    for _ in range(400):
        lines = chance.choice(texts).splitlines(keepends=True)
        text = "".join(lines[: chance.randrange(1, 20)])
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice(INSERTED) + text[at + chance.choice((0, 0, 1, 3)) :]
        if (read := read_quickly(text)) is not None:
            quick += 1
            assert repr(read) == repr(read_carefully(text, tmp_path / "recipe.yaml")), text
    assert quick > 50


@pytest.mark.parametrize(
    "text",
    ["", "- a", "a: 1\na: 2", "a: !!str 1", "a: &b 1", "a: &b {c: 1}\nd: *b", "<<: {a: 1}", "a: 0x1f", "a: 1_000"]
    + ["a: 2001-01-01", "a: .nan", "~: 1", "1: 2", "{a: 1}: 2", "? a", "a: 1\n---\nb: 2", "%YAML 1.1\n---\na: on"]
    + ["a:\t1", "a: .5", "a: True", "a: [", "a: 'b", "a: \x00", "a: \u2028", f"a: {'[' * 60}{']' * 60}"]
    + ["a: {b: 1,, c: 2}"],
)  # fmt: skip
def test_what_is_unusual_or_a_mistake_is_left_to_the_other_reader(text: str) -> None:
    assert read_quickly(text) is None


def test_values_are_those_of_yaml_1_2() -> None:
    text = "rate: 1e-3\nwhole: 12\nless: -0.5\nswitch: on\nanswer: no\nrest: [true, null, '1', x # y\n  ]\nempty:\n"
    read = read_quickly(text)
    assert read is not None
    values, lines = read
    rest = [True, None, "1", "x"]
    assert values == {
        "rate": 1e-3,
        "whole": 12,
        "less": -0.5,
        "switch": "on",
        "answer": "no",
        "rest": rest,
        "empty": None,
    }
    assert isinstance(values["rate"], float) and lines["rest", "3"] == 6 and lines["empty",] == 8
