"""No component is known outside its own file: the loop and the recipes' machinery name none."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pipelines.recipe.catalogue import FAMILIES, members_of

ROOT = Path(__file__).parents[2]
NAMES = {name for package in FAMILIES for name in members_of(package)[1]}
NEUTRAL = (
    "pipelines/training",
    "pipelines/recipe",
    "pipelines/models/opening.py",
    "pipelines/serving/answering/answerer.py",
    "pipelines/task_families/encoding.py",
)
"""What serves every component alike."""


def strings(path: Path) -> list[tuple[int, str]]:
    """Every string of a module that is no documentation, with its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented
    ]


@pytest.mark.parametrize("where", NEUTRAL)
def test_no_component_is_named(where: str) -> None:
    files = [ROOT / where] if where.endswith(".py") else sorted((ROOT / where).rglob("*.py"))
    assert files
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}" for path in files for line, text in strings(path) if text in NAMES
    ]
    assert not found, "a component is named outside its own file; let it say what it needs instead:\n" + "\n".join(
        found
    )


@pytest.mark.parametrize("where", NEUTRAL)
def test_no_member_is_imported(where: str) -> None:
    files = [ROOT / where] if where.endswith(".py") else sorted((ROOT / where).rglob("*.py"))
    members = {type_.__module__ for family in FAMILIES for type_ in members_of(family)[1].values()} - set(
        FAMILIES.values()
    )
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.module}"
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module in members
    ]
    assert not found, "the machinery imports one member of a family; import the family:\n" + "\n".join(found)
