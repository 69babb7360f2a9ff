"""The shipped recipes of language models over words compare like with like."""

from __future__ import annotations

import pytest

from tests.steps import RECIPES, library_of

LADDER = ["nnlm/unigram", "nnlm/trigram", "nnlm/fivegram", "nnlm/general", "rnnlm/general", "lstmlm/general"]


@pytest.mark.parametrize("reference", LADDER)
def test_a_rung_reads_the_same_words_of_the_same_text(reference: str) -> None:
    library = library_of(RECIPES)
    first, stage = (library.load(one.partition("/")[0]).stages[one.partition("/")[2]] for one in (LADDER[0], reference))
    assert (stage.tokenizer, stage.corpus, stage.budget.tokens) == (first.tokenizer, first.corpus, first.budget.tokens)
    assert first.tokenizer == library.load("word2vec").stages["general"].tokenizer


def test_each_recipe_compares_its_network_with_counts_of_its_own_text() -> None:
    library = library_of(RECIPES)
    for name in ("nn_bigram", "class_softmax"):
        stages = [stage for stage in library.load(name).stages.values() if stage.kind.reads_plain_text]
        assert len({(stage.tokenizer, stage.corpus, stage.budget.tokens) for stage in stages}) == 1 and len(stages) > 1


def test_the_short_context_differs_in_the_length_of_a_row_alone() -> None:
    stages = library_of(RECIPES).load("lstmlm").stages
    long, short = stages["general"], stages["short"]
    assert long.budget.length > short.budget.length and long.budget.batch_tokens == short.budget.batch_tokens
    assert long.model_copy(update={"budget": short.budget}) == short.model_copy(update={"like": long.like})
    elman = library_of(RECIPES).load("rnnlm").stages["general"]
    assert stages["short_elman"].backbone == elman.backbone
