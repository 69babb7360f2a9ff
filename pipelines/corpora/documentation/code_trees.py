"""Dependency trees of code: the statement of a line, its words, and the head and relation of each.

    x = f(y, 2)     x ─targets→ =     f ─value→ =     y ─args→ f     2 ─args→ f     ( , ) ─punct→ f     = ─root

A node of Python's syntax tree is represented by its operator, keyword or name, or else by its first child; the others
are attached to that by the names of their fields, brackets and the rest of the punctuation as `punct`, further words of
the node as `fixed`. Trees are exact; how hard they are says nothing about sentences that people speak.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pipelines.corpora.documentation.parses import parsed

Positioned: TypeAlias = ast.stmt | ast.expr | ast.alias | ast.arg | ast.keyword | ast.excepthandler | ast.pattern
"""Nodes with a position in the line."""
_PUNCTUATION = frozenset("()[]{},.:;")
_NO_WORDS = {tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}


@dataclass(frozen=True)
class CodeTree:
    """A statement, its words with their heads, counted from 1, 0 for the root, and relations."""

    sentence: str
    words: list[str]
    heads: list[int]
    relations: list[str]


def code_tree(line: str) -> CodeTree | None:
    """The tree of `line`; None where it is not one statement of Python in ASCII, or has formatted strings, whose
    contents have other positions in each version of Python."""
    module = parsed(line) if line.isascii() else None
    if module is None or len(module.body) != 1 or any(isinstance(one, ast.JoinedStr) for one in ast.walk(module)):
        return None
    tokens = [one for one in tokenize.generate_tokens(io.StringIO(line).readline) if one.type not in _NO_WORDS]
    if any(one.start[0] != 1 or one.end[0] != 1 for one in tokens):
        return None
    statement, builder = module.body[0], _Builder(tokens)
    return builder.tree(statement, line[: tokens[-1].end[1]])  # without a comment


class _Builder:
    """Finds the head of every word of one line."""

    def __init__(self, tokens: list[tokenize.TokenInfo]) -> None:
        self._tokens = tokens
        self._arcs: dict[int, tuple[int, str]] = {}

    def tree(self, statement: ast.stmt, sentence: str) -> CodeTree:
        root = self._attached(statement)
        for outside in range(len(self._tokens)):  # a semicolon at the end
            if outside != root:
                self._arcs.setdefault(outside, (root, "punct"))
        self._arcs[root] = (-1, "root")
        arcs = [self._arcs[number] for number in range(len(self._tokens))]
        words = [one.string for one in self._tokens]
        return CodeTree(sentence, words, [head + 1 for head, _ in arcs], [relation for _, relation in arcs])

    def _attached(self, node: Positioned) -> int:
        """Attach the words of `node` to each other; returns the number of the one that represents it."""
        children = sorted(_children(node), key=lambda child: (child[1].lineno, child[1].col_offset))
        inside = [self._span(child) for _, child in children]
        own = [number for number in self._span(node) if not any(number in span for span in inside)]
        leading = [number for number in own if self._tokens[number].string not in _PUNCTUATION]
        parts = [(self._attached(child), name) for name, child in children]
        head = leading[0] if leading else parts.pop(0)[0] if parts else own[0]
        for number, name in parts:
            self._arcs[number] = (head, name)
        for number in own:
            if number != head:
                self._arcs[number] = (head, "fixed" if number in leading else "punct")
        return head

    def _span(self, node: Positioned) -> range:
        """The numbers of the words of `node`."""
        begin, end = node.col_offset, node.end_col_offset
        assert end is not None, "a parsed node has an end"
        numbers = [n for n, one in enumerate(self._tokens) if begin <= one.start[1] and one.end[1] <= end]
        return range(numbers[0], numbers[-1] + 1)


def _children(node: ast.AST) -> Iterator[tuple[str, Positioned]]:
    """The children that have a position in the line, with the names of their fields; those of children without one,
    such as the arguments of a function, are its own."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, Positioned):
                yield name, child
            elif isinstance(child, ast.AST):
                yield from _children(child)
