"""Small files with names that say what is in them; no name of a component in the machinery; no trace of a machine."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pipelines.recipe.catalogue import FAMILIES, PAGE, members_of, render
from tests.steps import ROOT

LONGEST = 300
COLUMNS = 120
WRITTEN_BY_HAND = {".c", ".h", ".html", ".md", ".py", ".sh", ".sql", ".toml", ".yaml"}
"""Suffixes of files that people read; ruff lets lines of Python end in a pragma. Not among them: records (JSON, JSON
lines), drawings (SVG), tables of words (TSV), requirements.lock and LICENSE, which programs read or others have
written."""
SCRIPTS = {"Dockerfile", "Makefile"}
GENERATED_PAGES = {
    "docs/api.md",  # from the package cursus
    "docs/catalogue.md",  # from the components
    "docs/claims.md",  # from docs/claims
    "docs/commands.md",  # from the commands
    "docs/lattices.md",  # from docs/lattices
    "docs/performance.md",  # from benchmarks/records
    "docs/reliability.md",  # from docs/reliability
    "docs/zh/commands.md",  # from the commands
}
"""Pages that commands write; each has a test that renders it again."""
ROOM_BEFORE_AN_ADDRESS = 8
"""Columns of indentation and punctuation before an address on a line of its own."""
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers", "base_trainer", "tools"}
MACHINE = re.compile(
    r"(?<![\w.])/(?:home|Users|root|work|mnt)/(?!me\b)[\w.-]+"  # a path of somebody's machine; `/home/me` is an example
    r"|\.\./shared"
    r"|(?:https?://)[\w.-]*(?:artifactory|nexus|pypi-mirror|pypi-proxy|registry)[\w.-]*"  # a registry host
    r"|--index-url|--extra-index-url"
)
SHOWS = {ROOT / "pipelines" / "reports" / "report.py"}
"""The page that shows what evaluations wrote: it finds each section of the record under its name."""
WRITTEN_BY_TOOLS = {"LICENSE", "requirements.lock", "dvc.lock"}


@cache
def tracked() -> tuple[Path, ...]:
    """The files git knows; in a plain copy of the sources, the files of the folders that hold them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return tuple(path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file())
    rooms = ("benchmarks", "docs", "flows", "pipelines", "recipes", "tasks", "tests")
    return tuple(path for room in rooms for path in (ROOT / room).rglob("*.*") if "__pycache__" not in path.parts)


def python_files() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py"]


def test_names_say_what_is_in_a_file() -> None:
    vague = [path for path in tracked() if VAGUE & {part.partition(".")[0] for part in path.relative_to(ROOT).parts}]
    assert not vague, "name a module after the one thing it knows"


def test_files_stay_short() -> None:
    long = {
        str(path.relative_to(ROOT)): n for path in python_files() if (n := len(path.read_text().splitlines())) > LONGEST
    }
    assert not long, f"one idea a file, at most {LONGEST} lines: move the second idea out"


def too_wide(name: str, text: str) -> Iterator[int]:
    """Numbers of the lines of the file `name` that exceed 120 columns and may not."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) <= COLUMNS:
            continue
        if name.endswith(".md") and line.startswith("|"):
            continue  # a row of a Markdown table cannot be broken
        if any(len(address) + ROOM_BEFORE_AN_ADDRESS > COLUMNS for address in re.findall(r"https?://\S+", line)):
            continue  # nor can an address
        yield number


def test_lines_fit_120_columns() -> None:
    wide = [
        f"{name}:{number}"
        for path in tracked()
        if (path.suffix in WRITTEN_BY_HAND or path.name in SCRIPTS or path == ROOT / ".ci" / "run")
        and (name := str(path.relative_to(ROOT))) not in GENERATED_PAGES
        for number in too_wide(name, path.read_text(encoding="utf-8"))
    ]
    assert not wide, f"wrap these lines at {COLUMNS} columns"


def test_the_search_for_wide_lines_finds_one() -> None:
    words, address = "word " * 30, f"https://example.org/{'x' * 120}"
    assert list(too_wide("recipes/a.yaml", f"short\n{words}\n| {words} |")) == [2, 3]
    assert list(too_wide("docs/a.md", f"{words}\n| {words} |\n    see {address}")) == [1]


def compared(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string that code compares with, matches against, or looks for: line and string."""
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
            parts = [node.test]
        elif isinstance(node, ast.match_case):
            parts = [node.pattern]
        for part in parts:
            for inner in ast.walk(part):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield inner.lineno, inner.value


@pytest.mark.parametrize("room", ["pipelines", "tasks", "flows"])
def test_no_component_is_asked_for_by_name_outside_its_own_file(room: str) -> None:
    names = {name for package in FAMILIES for name in members_of(package)[1]}
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in (ROOT / room).rglob("*.py")
        for line, text in compared(ast.parse(path.read_text()))
        if text in names and not owned(path, text) and path not in SHOWS
    ]
    assert not found, "a component is asked what it can do (a field, a class variable), never what it is called"


def owned(path: Path, name: str) -> bool:
    """Whether `path` is the file of a component called `name`."""
    return path.stem == name and ".".join(path.parent.relative_to(ROOT).parts) in FAMILIES.values()


def test_the_search_for_names_finds_one() -> None:
    assert [text for _, text in compared(ast.parse("if objective.name == 'masked_lm': pass"))] == [
        "masked_lm",
        "masked_lm",
    ]
    assert [text for _, text in compared(ast.parse("x = 1 if name in ('electra',) else 2"))] == ["electra", "electra"]


def test_no_trace_of_a_machine_or_a_registry() -> None:
    here = Path(__file__)
    found = []
    for path in tracked():
        if path.name in WRITTEN_BY_TOOLS or path == here:
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a picture
        found += [
            f"{path.relative_to(ROOT)}:{n}: {m[0]}" for n, line in enumerate(lines, 1) if (m := MACHINE.search(line))
        ]
    assert not found, "paths are relative to the project or come from the user"


def test_the_catalogue_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run: python -m pipelines.recipe.catalogue"


def test_every_package_is_installed_and_explains_itself() -> None:
    for room in ("cursus", "flows", "tasks", "pipelines"):
        for path in (ROOT / room).rglob("*.py"):
            package = path.parent
            assert (package / "__init__.py").exists(), f"{package}: without __init__.py it is not packaged"
            if path.stat().st_size:
                assert ast.get_docstring(ast.parse(path.read_text())), f"{path}: say what this module is"
