"""Real text that every installation has: documentation strings of the standard library, parsed and never imported."""

from __future__ import annotations

import ast
import sysconfig
from functools import cache
from pathlib import Path

import pyarrow
import pyarrow.parquet

MANY = ("_pydecimal", "turtle", "doctest")
"""Modules of 300 documents; not `tkinter`, which Debian and others leave out of their Python."""
PLAIN = {
    "general": ("argparse", "logging", *MANY, "http", "urllib", "json"),
    "domain": ("asyncio", "multiprocessing", "concurrent"),
    "task_text": ("email", "unittest", "xml"),
}
"""Plain-text table → the modules and packages it is read from."""
LABELS = ("email", "unittest", "xml")
ROWS = {"train": (0, 8), "validation": (8, 14), "test": (14, 20)}
"""Labelled table → the range of each label's documents."""


def documents(*names: str) -> list[str]:
    """The documentation strings of standard library modules, at least 80 characters each, in source order."""
    return [text for name in names for text in _documents(name)]


def write_tables(folder: Path) -> dict[str, Path]:
    """The tables of a prepared dataset as parquet files under `folder`, by name."""
    columns = {name: {"text": documents(*modules)} for name, modules in PLAIN.items()}
    for name, (begin, end) in ROWS.items():
        labelled = [(text, label) for label in LABELS for text in documents(label)[begin:end]]
        columns[name] = {"text": [text for text, _ in labelled], "label": [label for _, label in labelled]}
    paths = {name: folder / f"{name}.parquet" for name in columns}
    for name, path in paths.items():
        pyarrow.parquet.write_table(pyarrow.table(columns[name]), path)
    return paths


@cache
def _documents(name: str) -> tuple[str, ...]:
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted((root / name).rglob("*.py")) if (root / name).is_dir() else [root / f"{name}.py"]
    found: dict[str, None] = {}
    for file in files:
        if "test" in file.relative_to(root).parts[:-1]:
            continue
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node)
                if text is not None and len(text) >= 80:
                    found[text] = None
    return tuple(found)
