"""Every known mistake can still be made, and its tests still exist; `make mutants` makes them."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tests import tiers
from tests.mutants.known import KNOWN, Mutant
from tests.steps import ROOT

every_mutant = pytest.mark.parametrize("mutant", KNOWN.values(), ids=KNOWN)


@every_mutant
def test_its_text_stands_once_in_the_code_and_the_mistake_is_python(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.file} was changed: write the mistake anew (known.py)"
    ast.parse(text.replace(mutant.old, mutant.new))


@every_mutant
def test_its_tests_exist_and_are_fast(mutant: Mutant) -> None:
    assert mutant.tests
    for test in mutant.tests:
        module, _, function = test.partition("[")[0].partition("::")
        assert function in functions(module), f"no test {function} in {module}"
        assert not tiers.slow(module), f"{module} is in the slow tier"


@cache
def functions(module: str) -> set[str]:
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
