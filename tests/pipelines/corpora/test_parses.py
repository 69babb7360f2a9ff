"""Examples of code and their bracketed parses: a parsed corpus without downloads."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pipelines.corpora.documentation import docstrings
from pipelines.corpora.documentation.parses import LONGEST, SHORTEST, bracketed, parses
from pipelines.corpora.settings.sources import DocumentationSource
from pipelines.corpora.steps import sources

TEXT = """\
Sums.

    >>> total = np.sum(np.ones((2, 3)), axis=1, out=a)
    array([3., 3.])
    >>> for row in values:
    ...     print(row.total, row.name, sep=", ")
    >>> x = 1
    >>> this is no statement of the language of the examples
"""


def test_a_tree_is_written_with_labels_and_brackets_alone() -> None:
    (tree,) = ast.parse("a = f(b, 2)").body
    assert bracketed(tree) == "( Assign Name ( Call Name Name Constant ) )"
    assert bracketed(ast.parse("a + b").body[0]) == "( Expr ( BinOp Name Add Name ) )"


def test_examples_are_parsed_where_they_are_statements_of_some_length() -> None:
    (first, tree), (second, loop) = parses(TEXT)
    assert first == "total = np.sum(np.ones((2, 3)), axis=1, out=a)"
    assert tree.startswith("( Assign Name ( Call ( Attribute Name ) ( Call ( Attribute Name ) ( Tuple Constant")
    assert second == 'for row in values: print(row.total, row.name, sep=", ")'
    assert loop.startswith("( For Name Name ( Expr ( Call Name")
    assert tree.count("(") == tree.count(")") and tree.count("keyword") == 2
    lengths = {
        number: len(list(parses(f">>> {'x' * number}"))) for number in (SHORTEST - 1, SHORTEST, LONGEST, LONGEST + 1)
    }
    assert lengths == {SHORTEST - 1: 0, SHORTEST: 1, LONGEST: 1, LONGEST + 1: 0}


def test_a_source_has_this_form_and_its_column(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(f'"""{TEXT}"""\n', encoding="utf-8")
    # the installation is this one file
    monkeypatch.setattr(docstrings, "python_files", lambda packages: {"m.py": tmp_path / "m.py"})
    source = DocumentationSource.model_validate({"documentation": "domain", "form": "parses"})
    assert dict(source.columns) == {"parse": "string"}
    assert list(sources.documented(source)) == [
        (text, f"m.py:module#{number}", {"parse": parse})
        for number, (text, parse) in enumerate(parses(TEXT.strip()), 1)
    ]
