"""Sentences of a formal language with their parses, which every installation has: examples of code in documentation.

    a = np.ones((2, 3))   ─▶   ( Assign Name ( Call ( Attribute Name ) ( Tuple Constant Constant ) ) )

A constituent is its label and its constituents in brackets, a leaf is its label alone, and words are left out, as
Vinyals et al. 2015 (arXiv:1412.7449, §2.2) write trees for a decoder. Parses are Python's own; how hard they are says
nothing about sentences that people speak.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

SHORTEST, LONGEST = 40, 240
"""Characters of an example."""
_PROMPT, _CONTINUED = ">>>", "..."


def parses(text: str) -> Iterator[tuple[str, str]]:
    """The examples of code of a text, each on one line, and their bracketed parses; what Python cannot parse is left
    out."""
    for example in code_examples(text):
        line = " ".join(example.split())
        if SHORTEST <= len(line) <= LONGEST and (tree := parsed(example)) is not None:
            yield line, " ".join(bracketed(one) for one in tree.body)


def bracketed(node: ast.AST) -> str:
    """`( Label child … )` of a node with children, `Label` of one without; whether a name is read or written is no
    child."""
    label = type(node).__name__
    children = [bracketed(one) for one in ast.iter_child_nodes(node) if not isinstance(one, ast.expr_context)]
    return f"( {label} {' '.join(children)} )" if children else label


def code_examples(text: str) -> Iterator[str]:
    """The statements after prompts, with the lines that continue them."""
    lines: list[str] = []
    for line in [*text.split("\n"), ""]:
        stripped = line.strip()
        if lines and not stripped.startswith(_CONTINUED):
            yield "\n".join(lines)
            lines = []
        if stripped.startswith(f"{_PROMPT} "):
            lines = [stripped.removeprefix(_PROMPT).lstrip()]
        elif lines:
            lines.append(stripped.removeprefix(_CONTINUED).removeprefix(" "))


def parsed(source: str) -> ast.Module | None:
    """The syntax tree of `source`; None where Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in third-party code
            return ast.parse(source)
    except (SyntaxError, ValueError):
        return None
