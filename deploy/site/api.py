"""The reference of the package `cursus`, made from its code.

    python -m deploy.site.api            # writes docs/api.md

Signatures, docstrings and fields of what `cursus.__all__` lists: each function is followed by what it returns. A test
holds the page against the code.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import cursus

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "api.md"
HEAD = """\
# Reference of the package

Written by `python -m deploy.site.api` from the code: do not edit. [Cursus from Python](python.md) is the introduction.
The argument `root` of every function is the folder of a project: `CURSUS_ROOT`, or the one around the current folder,
when not given.
"""
FIRST = ("run", "load", "compare", "lineage", "dataset")
"""The functions in the order in which they are used."""


def main() -> None:
    """Write the page."""
    PAGE.write_text(render(), encoding="utf-8")


def render() -> str:
    """The page as Markdown."""
    lines = [HEAD]
    for name in in_order():
        lines += _function(name) if inspect.isfunction(getattr(cursus, name)) else _class(name)
    return "\n".join(lines).rstrip() + "\n"


def in_order() -> list[str]:
    """The names of `cursus.__all__`: each function before the class that it returns, and then what is left."""
    names: dict[str, None] = {}
    functions = {name: value for name in cursus.__all__ if inspect.isfunction(value := getattr(cursus, name))}
    for name, function in sorted(functions.items(), key=lambda one: FIRST.index(one[0])):
        names |= {name: None, str(function.__annotations__["return"]): None}
    return list(names | dict.fromkeys(cursus.__all__))


def _function(name: str) -> Iterator[str]:
    yield f"## `cursus.{name}`"
    yield ""
    yield from _definition(_node(getattr(cursus, name)), _source(getattr(cursus, name)))


def _class(name: str) -> Iterator[str]:
    class_: Any = getattr(cursus, name)
    node, source = _node(class_), _source(class_)
    yield f"## `cursus.{name}`"
    yield ""
    yield f"{_documentation(node)}\n"
    fields = list(_fields(node))
    if fields:
        yield "| field | type | |"
        yield "|---|---|---|"
        yield from (f"| `{field}` | `{type_}` | {text} |" for field, type_, text in fields)
        yield ""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
            yield from _definition(method, source)


def _definition(node: Any, source: str) -> Iterator[str]:
    """The signature of a function as it is written, with its decorators, and its docstring."""
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    signature = "\n".join(source.splitlines()[first - 1 : node.body[0].lineno - 1])
    yield f"```python\n{textwrap.dedent(signature).removesuffix(':')}\n```"
    yield ""
    yield f"{_documentation(node)}\n"


def _fields(node: Any) -> Iterator[tuple[str, str, str]]:
    """The fields of a dataclass: name, type, and the docstring below."""
    for first, second in pairwise([*node.body, ast.Pass()]):
        if isinstance(first, ast.AnnAssign) and isinstance(first.target, ast.Name):
            is_documented = isinstance(second, ast.Expr) and isinstance(second.value, ast.Constant)
            text = " ".join(str(second.value.value).split()) if is_documented else ""
            yield first.target.id, ast.unparse(first.annotation).replace("|", "or"), text


def _documentation(node: Any) -> str:
    text = ast.get_docstring(node)
    assert text is not None, f"{node.name} has no docstring"
    return text


def _node(value: Any) -> Any:
    """The definition of a function or a class in its module."""
    body = ast.parse(_source(value)).body
    (node,) = (one for one in body if getattr(one, "name", None) == value.__name__)
    return node


def _source(value: Any) -> str:
    return _text(importlib.import_module(value.__module__))


@cache
def _text(module: ModuleType) -> str:
    return inspect.getsource(module)


if __name__ == "__main__":
    main()
