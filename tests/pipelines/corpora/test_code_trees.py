"""Dependency trees of code, worked by hand, and what is no tree."""

from __future__ import annotations

import pytest

from pipelines.corpora.documentation.code_trees import code_tree
from pipelines.corpora.documentation.exercises import Exercise, exercise_that_fills
from pipelines.task_families import TaskFamily

WORKED = {
    "x = f(y, 2)": "x→=:targets =→root f→=:value (→f:punct y→f:args ,→f:punct 2→f:args )→f:punct",
    # an operator represents its operands, an attribute its name, a keyword its own
    "np.dot(a - b, axis=0)": "np→dot:value .→dot:punct dot→root (→dot:punct a→-:left -→dot:args b→-:right "
    ",→dot:punct axis→dot:keywords =→axis:fixed 0→axis:value )→dot:punct",
    # what has no position of its own hands its children on: a slice has one, the arguments of a function do not
    "v[1:3]": "v→root [→v:punct 1→v:slice :→1:punct 3→1:upper ]→v:punct",
    "lambda a, b=2: a": "lambda→root a→lambda:args ,→lambda:punct b→lambda:args =→lambda:fixed 2→lambda:defaults "
    ":→lambda:punct a→lambda:body",
    "print('a b') ; # why": "print→root (→print:punct 'a b'→print:args )→print:punct ;→print:punct",
}


@pytest.mark.parametrize("line", WORKED)
def test_words_depend_on_what_represents_the_node_above(line: str) -> None:
    tree = code_tree(line)
    assert tree is not None
    arcs = [
        f"{word}→root" if head == 0 else f"{word}→{tree.words[head - 1]}:{relation}"
        for word, head, relation in zip(tree.words, tree.heads, tree.relations, strict=True)
    ]
    assert " ".join(arcs) == WORKED[line]
    assert line.startswith(tree.sentence) and "#" not in tree.sentence


@pytest.mark.parametrize("line", ["x = ", "a; b", "f'{x}'", "é = 1", "", "x = [1,\n 2]"])
def test_what_is_not_one_plain_statement_has_no_tree(line: str) -> None:
    assert code_tree(line) is None


def test_each_exercise_fills_columns_of_a_family_and_no_two_the_same() -> None:
    assert exercise_that_fills({"no": "such"}) is None
    filled = [tuple(sorted(one.columns.items())) for one in Exercise.members.values()]  # type: ignore[attr-defined]
    families = [TaskFamily.model_validate(name) for name in TaskFamily.members]
    assert len(filled) == len(set(filled))
    assert set(filled) <= {tuple(sorted(one.columns.items())) for one in families}
