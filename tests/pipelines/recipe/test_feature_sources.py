"""Features that cannot be read are refused when a recipe is loaded: where it stands, why, and what would fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.recipe.mistakes import Mistake, check_refusal, refusal
from tests.pipelines.training.reading_recipe import READING
from tests.steps import library_of

TUNED = "features: {from: bert, layers: top, trains: true}"
"""What one of its stages says, which the cases replace; it is on line 57."""


CASES = {
    "a stage that is not there": Mistake(TUNED, "features: {from: brt}", ("no stage 'brt'", "Did you mean 'bert'?")),
    "no stage": Mistake(TUNED, "features: {layers: top}", ("name the stage whose network is read: from: <stage>",)),
    "a word that is no layer": Mistake(TUNED, "features: {from: bert, layers: upper}", ("'upper' is neither mix",)),
    "a layer below all": Mistake(TUNED, "features: {from: bert, layers: -1}", ("nor the number of a layer",)),
    "an unknown key": Mistake(TUNED, "features: {form: bert}", ("feature source has no key 'form'", "'from'")),
    "one layer that trains": Mistake(
        TUNED, "features: {from: bert, layers: 1, trains: true}", ("the layers above 1 would get no gradient", "concat")
    ),
    "a network that reads features itself": Mistake(
        TUNED, "features: {from: tag}", ("from: tag reads features itself", "name the stages that it reads")
    ),
    "a backbone that cannot read": Mistake(
        "backbone: {name: bilstm, hidden_size: 24, embedding_size: 8}",
        "backbone: {name: awd_lstm, hidden_size: 24}",
        ("the backbone awd_lstm cannot read features; backbones that can: bigru, bilstm, taglm",),
    ),
    "a head whose rows are no words": Mistake(
        f"tuned: {{like: tag, {TUNED}}}",
        f"tuned: {{like: tag, {TUNED}, head: sequence_classification, objective: cross_entropy}}",
        ("rows of sequence_classification cannot be aligned by words", "crf_tagging, tagging"),
    ),
    "a stage that continues another": Mistake(
        f"tuned: {{like: tag, {TUNED}}}",
        f"tuned: {{like: tag, {TUNED}, start: bert}}",
        ("a network that continues another keeps the features of that one",),
    ),
    "plain text": Mistake(
        f"tuned: {{like: tag, {TUNED}}}",
        f"tuned: {{like: elmo, {TUNED}}}",
        ("a finetune stage reads features, and this is a pretrain stage",),
    ),
    "nothing to read": Mistake(
        f"tuned: {{like: tag, {TUNED}}}",
        "tuned: {like: first, features: []}",
        ("embedding_size: 0 without features leaves nothing to read",),
    ),
    "random features": Mistake(
        f"tuned: {{like: tag, {TUNED}}}",
        "tuned: {like: further, start: {untrained: tag}}",
        ("untrained: tag reads features, and random ones are none; use like: tag",),
    ),
    "a report as features": Mistake(
        f"tuned: {{like: tag, {TUNED}}}",
        "report: {kind: evaluate, start: [tag], corpus: task, suite: scores}\n"
        "  tuned: {like: tag, features: {from: report}}",
        ("from: report is an evaluate stage, which makes no network",),
    ),
    "two stacks": Mistake(
        "backbone:\n      name: transformer\n      positions: 64\n"
        "      dims: {hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 32}\n"
        "    corruption: token_mask\n    head: masked_lm\n    objective: masked_lm",
        "backbone: {name: transformer, architecture: t5}\n    corruption: sentinel_spans\n"
        "    head: sequence_to_sequence\n    objective: sequence_to_sequence",
        ("from: bert is a transformer t5, which has no state of its own for each token", "awd_lstm"),
    ),
    "a teacher that reads what the student does not": Mistake(
        f"tuned: {{like: tag, {TUNED}}}",
        "tuned: {like: tag, features: [], teacher: first}",
        ("teacher: the teacher reads other features than this stage",),
    ),
    "spellings of a tokenizer that has none": Mistake(
        "tokenizer: {name: spelled_words, vocab_size: 1100, min_count: 2}",
        "tokenizer: {name: words, vocab_size: 1100}",
        ("bidirectional_lm needs a tokenizer with spelling", "tokenizers that fit: spelled_words"),
    ),
    "two language models of a network with one": Mistake(
        "backbone: {name: elmo, projection_size: 12, lstm_size: 24, letter_size: 4, filters: [[1, 4], [3, 8]]}",
        "backbone: awd_lstm",
        ("bidirectional_lm needs a backbone that is two_language_models", "backbones that fit: elmo"),
    ),
    "a projection that is none": Mistake(
        "projection_size: 12, lstm_size: 24", "projection_size: 24, lstm_size: 24", ("projects nothing",)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_refused_with_its_place_the_reason_and_what_fits(case: Mistake, tmp_path: Path) -> None:
    recipe = (
        READING.replace("tokenizer: {name: wordpiece, vocab_size: 512}", "tokenizer: unigram", 1)
        if ("t5" in case.new)
        else READING
    )
    message = refusal(tmp_path, "reading", case.made_in(recipe))
    assert message.startswith(str(tmp_path / "reading.yaml:"))
    check_refusal(message, case.says)


def test_what_can_be_read_is_not_refused(tmp_path: Path) -> None:
    recipe = library_of(tmp_path, reading=READING).load("reading")
    assert [one.layers for one in recipe.stages["tag"].features] == ["mix", "top"]
    assert recipe.stages["first"].features[0].layers == 1
