"""Pairs of segments where they cannot be: refused when a recipe is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.recipe.problems import Setting
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import Refused, labelled, written
from tests.steps import library_of

PAIRS = {
    "corruption": "[next_sentence, token_mask]",
    "head": "masked_lm_and_pairs",
    "objective": "[masked_lm, next_sentence]",
}
CASES = {
    "an architecture without such a head": Refused(
        written(**{**PAIRS, "backbone": "{name: transformer, architecture: roberta}"}),
        (":12: ", "masked_lm_and_pairs needs a backbone that is segment_pairs", "that fit: transformer albert, "),
    ),
    "a head for masked tokens alone": Refused(
        written(**{**PAIRS, "head": "masked_lm"}),
        (":13: ", "next_sentence needs segment_logits, which the head masked_lm does not", "masked_lm_and_pairs"),
    ),
    "no pairs": Refused(
        written(**{**PAIRS, "corruption": "token_mask"}),
        (":13: ", "next_sentence needs segment_labels", "parts that do: next_sentence"),
    ),
    "masks before the segments are exchanged": Refused(
        written(**{**PAIRS, "corruption": "[token_mask, next_sentence]"}),
        (":13: ", "masked_lm needs masked_labels, which no part of this stage provides", "token_mask"),
    ),
    "rows of several documents": Refused(
        written(**{**PAIRS, "layout": "packed_documents"}),
        (":9: ", "next_sentence splits windows into segments", "hold several documents; use windows"),
    ),
    "more token types than there are": Refused(
        written(**{**PAIRS, "backbone": "{name: transformer, architecture: bert, dims: {type_vocab_size: 1}}"}),
        (":11: ", "next_sentence writes 2 token types", "raise backbone.dims.type_vocab_size"),
    ),
    "a pooler that the backbone has not": Refused(
        labelled(
            head="{name: sequence_classification, pooling: pooler}",
            general={"backbone": "{name: transformer, architecture: electra}"},
        ),
        (":20: ", "sequence_classification needs a backbone that is segment_pairs", "transformer bert"),
        "text_classification",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_pair_that_cannot_be_is_refused(case: Refused, tmp_path: Path) -> None:
    message = refusal(tmp_path, "meeting", case.recipe, Setting(case.family, case.language))
    check_refusal(message, case.says)


def test_pairs_that_can_be_are_not_refused(tmp_path: Path) -> None:
    recipe = labelled(head="{name: sequence_classification, pooling: pooler}", general=PAIRS)
    assert library_of(tmp_path, meeting=recipe).load("meeting", setting=Setting("pair_classification")).stages
