"""Identity of code: a digest of what a module computes, not of how it is written.

The hash covers the normalised syntax tree of a module and of every first-party module it imports, at any depth.
Comments, docstrings and formatting never change it; a changed default, constant or helper does.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

FIRST_PARTY = ("pipelines", "tasks", "flows")
OUTSIDE = ("pipelines.safety", "pipelines.shipped", "pipelines.components.own_parts")
"""Modules that decide what is refused or redacted, or where files are, never what is computed: no identity depends on
them."""


def source_hash(modules: str | Iterable[str]) -> str:
    """Digest, sixteen hex digits, of `modules` together with all first-party code they import.

    Raises ModuleNotFoundError for a module that does not exist.
    """
    roots = [modules] if isinstance(modules, str) else sorted(set(modules))
    everything: set[str] = set()
    for root in roots:
        if _file(root) is None:
            raise ModuleNotFoundError(f"no module is called {root!r}", name=root)
        everything |= closure(root)
    digest = hashlib.sha256()
    for module in sorted(everything):
        digest.update(f"{module}\0{_read(module)[0]}\0".encode())
    return digest.hexdigest()[:16]


@cache
def closure(module: str) -> frozenset[str]:
    """`module` and every first-party module it imports, directly or through others."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting.extend(_read(current)[1])
    return frozenset(seen)


@cache
def _read(module: str) -> tuple[str, frozenset[str]]:
    """The normalised syntax tree of a module as text, and the first-party modules that it imports."""
    path = _file(module)
    if path is None:
        return "", frozenset()
    tree, named = _parsed(module, path)
    first_party = {name for name in named if _file(name) is not None}
    # importing a.b.c runs a/__init__ and a.b/__init__ as well
    for name in tuple(first_party) + (module,):
        parts = name.split(".")
        first_party |= {".".join(parts[:end]) for end in range(1, len(parts))}
    return tree, frozenset(name for name in first_party if not _is_outside(name))


def _parsed(module: str, path: Path) -> tuple[str, list[str]]:
    """The normalised syntax tree of the file of a module as text, and all names that it imports.

    Kept beside the module's bytecode, as Python does, because parsing all of them takes more than a second of every
    command; what is kept is that of these bytes, read by this code.
    """
    source = path.read_bytes()
    key = hashlib.sha256(b"\0".join((_own_source(), module.encode(), source))).hexdigest()
    kept = Path(importlib.util.cache_from_source(str(path), optimization="")).with_suffix(".tree.json")
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(kept.read_bytes())
        if known["key"] == key:
            return str(known["tree"]), list(known["imports"])
    tree = _without_docstrings(ast.parse(source))
    named = _imported(tree, module if path.name == "__init__.py" else module.rpartition(".")[0])
    text = ast.dump(tree)
    if not sys.dont_write_bytecode:
        with suppress(OSError):  # a package that this user cannot write to
            kept.parent.mkdir(exist_ok=True)
            temporary = kept.with_name(f".{kept.name}-{os.getpid()}")
            temporary.write_text(json.dumps({"key": key, "imports": named, "tree": text}), encoding="utf-8")
            os.replace(temporary, kept)
    return text, named


@cache
def _own_source() -> bytes:
    return Path(__file__).read_bytes()


def _imported(tree: ast.Module, package: str) -> list[str]:
    """Sorted names that a module of `package` imports to compute with. Empties blocks that only type checkers read."""
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and _is_type_checking_block(node):
            # imported for annotations only: cannot change a result. Emptied before the imports are collected, since
            # ast.walk queues the children of a node before it yields the node
            node.body.clear()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, package)
            named |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return sorted(named)


def _is_outside(module: str) -> bool:
    return any(module == room or module.startswith(room + ".") for room in OUTSIDE)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            # a string as a statement is documentation anywhere, attribute docstrings included
            node.body[:] = [
                statement
                for statement in node.body
                if not (
                    isinstance(statement, ast.Expr)
                    and isinstance(statement.value, ast.Constant)
                    and isinstance(statement.value.value, str)
                )
            ] or [ast.Pass()]
    return tree


def _is_type_checking_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def _file(module: str) -> Path | None:
    """The file of a first-party module; None when it is not a module (`from package import function`).

    Located by its path: the import system would import the parent packages, and torch with them.
    """
    package, *rest = module.split(".")
    if package not in FIRST_PARTY:
        return None
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    stems = [Path(spec.origin).parent.joinpath(*rest)]
    # a package that has been imported may have further folders: those of a project's own parts
    parent = sys.modules.get(module.rpartition(".")[0])
    stems += [Path(folder) / rest[-1] for folder in getattr(parent, "__path__", ()) if rest]
    files = (path for stem in stems for path in (stem / "__init__.py", stem.with_suffix(".py")))
    return next((path for path in files if path.is_file()), None)
