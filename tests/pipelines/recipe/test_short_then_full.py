"""BERT's rows: nine tenths of the tokens in short ones, the rest in full ones (Devlin et al. 2018, appendix A.2)."""

from __future__ import annotations

import pytest

from pipelines.recipe.schema import Recipe
from tests.steps import shipped


def chain(recipe: Recipe, stage: str) -> list[str]:
    """The stages on plain text that `stage` goes on from, the last first."""
    start = recipe.stages[stage].start
    return [start, *chain(recipe, start)] if isinstance(start, str) else []


@pytest.mark.parametrize("side", ["classify", "masked_classify", "left_classify"])
def test_a_tenth_of_the_tokens_is_in_rows_as_long_as_there_are_positions(side: str) -> None:
    varied, usual = shipped("bert", "short_then_full"), shipped("bert")
    last, *short = chain(varied, side)
    budgets = [varied.stages[name].budget for name in (last, *short)]
    tokens = [budget.tokens or 0 for budget in budgets]
    assert tokens[0] == pytest.approx(0.1 * sum(tokens)) and len(short) == 2
    assert sum(tokens) == sum(usual.stages[name].budget.tokens or 0 for name in chain(usual, side))
    backbone = varied.stages[last].backbone
    assert backbone is not None and budgets[0].length == backbone.max_length
    assert {budget.length for budget in budgets[1:]} == {64}
    shifts = [one.name for name in (last, *short) for one in varied.stages[name].corruption if "positions" in one.name]
    assert not shifts, "positions beyond the short rows are learned in full ones"


def test_the_sides_differ_in_nothing_else_from_the_recipe() -> None:
    varied, usual = shipped("bert", "short_then_full"), shipped("bert")
    for name in ("classify", "masked_classify", "left_classify", "scratch"):
        own, other = (one.stages[name].model_dump(exclude={"start"}) for one in (varied, usual))
        assert own == other
