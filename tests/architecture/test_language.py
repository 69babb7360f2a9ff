"""The field's own words: identifiers, docstrings and class names are held against docs/glossary.md."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.steps import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
ROOMS = ("cursus", "flows", "tasks", "pipelines", "benchmarks")
WRITTEN = {"asks", "hangs", "says"}
"""Keys of files that users write or that were written before: a claim `says` its sentence, `quality` has `asks`,
a record of `docs/reliability` lists what `hangs`."""
PHRASES = re.compile(
    r"^Of [a-z]|\bhangs? on\b|\basks? nobody\b|\bthis house\b|\bof the house\b|\bwhoever\b|\bsurer than\b"
    r"|\bstands? beside\b"
    r"|\bis told\b|\bare told\b|\bwas told\b|\bis asked\b|\bare asked\b|\bwas asked\b",
    re.MULTILINE,
)
"""Turns of phrase that a reader of this field has to decipher."""


@cache
def words_not_ours() -> frozenset[str]:
    """The words of the glossary's second table."""
    _, _, table = GLOSSARY.read_text(encoding="utf-8").partition("## Words that are not ours")
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ") and "|---" not in line][1:]
    return frozenset(word.strip() for row in rows for word in row.split(","))


def parts(identifier: str) -> set[str]:
    """The words of an identifier, lower case: `told_by_first` and `ToldByFirst` have three."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)}


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that a module gives to something, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def modules(*rooms: str) -> list[Path]:
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))


def test_the_glossary_has_both_tables() -> None:
    assert {"told", "asked", "grain"} <= words_not_ours() and "write" not in words_not_ours()


@pytest.mark.parametrize("room", ROOMS)
def test_identifiers_use_the_words_of_the_field(room: str) -> None:
    private = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules(room)
        for line, name in identifiers(ast.parse(path.read_text(encoding="utf-8")))
        if name not in WRITTEN and parts(name) & words_not_ours()
    ]
    assert not private, "docs/glossary.md says what to write instead:\n" + "\n".join(private)


def documentation(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Docstrings, also those under attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


@pytest.mark.parametrize("room", ROOMS)
def test_documentation_reads_without_a_key(room: str) -> None:
    odd = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r}"
        for path in modules(room)
        for line, text in documentation(ast.parse(path.read_text(encoding="utf-8")))
        if (match := PHRASES.search(text))
    ]
    assert not odd, "a noun or an imperative first, in the field's words:\n" + "\n".join(odd)


def test_the_searches_find_what_they_look_for() -> None:
    tree = ast.parse('def told_by_first(value):\n    """Of rows."""\n    asked = 1\n')
    assert [name for _, name in identifiers(tree) if parts(name) & words_not_ours()] == ["told_by_first", "asked"]
    assert [text for _, text in documentation(tree) if PHRASES.search(text)] == ["Of rows."]


def test_a_class_name_means_one_thing() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for path in modules("cursus", "flows", "tasks", "pipelines"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(path.relative_to(ROOT)))
    twice = {name: paths for name, paths in where.items() if len(paths) > 1}
    assert not twice, "name each after what it is"
