"""Parts that cannot meet are refused when a recipe is loaded: where it stands, what, why, and what would fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.recipe.problems import Setting
from tests.pipelines.recipe.attention_refusals import ATTENTION
from tests.pipelines.recipe.augmentation_refusals import AUGMENTATION
from tests.pipelines.recipe.length_refusals import LENGTHS
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import GPT, STATIC, Refused, labelled, written
from tests.steps import RECIPES, library_of

JUDGED = "  report: {{kind: evaluate, start: [{}], corpus: task, suite: {}}}"
SHIFTED = "[{{name: shift_positions, positions: {}}}, token_mask]"
CASES = {
    "two streams of a body with one": Refused(
        written(corruption="permutation", head="permuted_lm", objective="permuted_lm"),
        (
            ":12: stages.general.head",
            "permuted_lm needs a backbone that is two_stream",
            "bert",
            "fit: transformer xlnet",
        ),
    ),
    "a language model on a body that sees both sides": Refused(
        written(corruption="[]", head="causal_lm", objective="causal_lm"),
        (
            ":12: ",
            "causal_lm needs a backbone that is causal",
            "awd_lstm, elman, gru, ",
            " lstm, ",
            "transformer gpt2",
        ),
    ),
    "a pair of single texts": Refused(
        labelled(head="regression", objective="squared_error"),
        (":20: ", "regression answers pair_regression", "is text_classification; heads that fit: ", "text_to_text"),
        "text_classification",
    ),
    "single texts in both orders": Refused(
        labelled(head="{name: sequence_classification, both_orders: true}"),
        (":20: ", "sequence_classification, both_orders", "text_classification"),
        "text_classification",
    ),
    "a pair as unlabelled text": Refused(
        labelled(corpus="[task, task_text]", kind="compress", objective="match_logits", compression="select_layers"),
        (":19: ", "a pair_classification example is no training example without its answer", "corpus: task"),
        "pair_classification",
    ),
    "a chain of tags on a classification dataset": Refused(
        labelled(head="crf_tagging", objective="crf"),
        (
            ":20: ",
            "crf_tagging answers layout_tagging, tagging, but this dataset is text_classification",
            "sequence_classification",
        ),
        "text_classification",
    ),
    "a classifier on tags": Refused(
        labelled(), (":20: ", "this dataset is tagging; heads that fit: ", "crf_tagging", "tagging"), "tagging"
    ),
    "whole words without a segmentation": Refused(
        written(corruption="whole_word_mask"),
        (
            ":11: ",
            "whole_word_mask needs word_starts, which no part before it provides; parts that do: segmentation: jieba",
        ),
        language="zh",
    ),
    "words between spaces where there are none": Refused(
        written(corruption="whole_word_mask", segmentation="spaces"),
        (":8: ", "spaces segments languages written with spaces", "language is zh; segmentations that fit: jieba"),
        language="zh",
    ),
    "a dictionary of another language": Refused(
        written(corruption="whole_word_mask", segmentation="jieba"),
        (":8: ", "jieba segments zh, but this dataset's language is en; segmentations that fit: spaces"),
        language="en",
    ),
    "prompts longer than the positions": Refused(
        written(JUDGED.format("general", "{name: prompting, shots: [0, 16], tokens: 40}"), **GPT),
        (":16: ", "cannot judge stage 'general': rows of up to 680 tokens do not fit its 512 positions", "positions"),
    ),
    "prompts for a model that does not go on": Refused(
        written(JUDGED.format("general", "prompting")),
        (":16: ", "its head masked_lm does not provide next_logits; heads that do: ", "causal_lm"),
    ),
    "rows longer than the positions": Refused(
        written(length="520"),
        (
            ":15: ",
            "length: rows of 520 tokens do not fit the 512 positions",
            "raise backbone.positions or lower length",
        ),
    ),
    "padded rows longer than the positions": Refused(
        labelled(general={"backbone": "{name: transformer, positions: 60}"}, length="58"),
        (":23: ", "rows of 64 tokens do not fit the 60 positions"),
    ),
    "masking without a mask": Refused(
        written(tokenizer="unigram"),
        (
            ":11: ",
            "token_mask needs a tokenizer with mask; unigram has sentinels",
            "byte_bpe, characters, dialogue_wordpiece, ",
            ", wordpiece, xlmr_unigram, xlnet_unigram",
        ),
    ),
    "sentinels of a tokenizer without": Refused(
        written(
            backbone="{name: transformer, architecture: t5}",
            corruption="sentinel_spans",
            head="sequence_to_sequence",
            objective="sequence_to_sequence",
        ),
        (
            ":11: ",
            "sentinel_spans needs a tokenizer with sentinels; wordpiece has mask, new_words; tokenizers that fit: "
            "unigram",
        ),
    ),
    "a tree over words that were not counted": Refused(
        written(**{**STATIC, "tokenizer": "wordpiece"}),
        (
            ":12: ",
            "path_prediction needs a tokenizer with counts; wordpiece has mask, new_words; tokenizers that fit: "
            "maskable_words, words",
        ),
    ),
    "two strategies for one decision": Refused(
        labelled(strategy="[gradual_unfreezing, chain_thaw]"),
        (":22: ", "gradual_unfreezing and chain_thaw both decide when each layer trains; keep one of them"),
    ),
    "a strategy with nothing left to decide": Refused(
        labelled(strategy="[frozen, gradual_unfreezing]"), (":22: ", "frozen", "gradual_unfreezing", "drop one of them")
    ),
    "an auxiliary language model on a body that sees both sides": Refused(
        labelled(objective="[cross_entropy, {name: causal_lm, weight: 0.5}]"),
        (
            ":21: ",
            "causal_lm needs next_logits, which sequence_classification provides on a backbone that is causal",
            "gpt2",
        ),
    ),
    "a signal that the head does not say": Refused(
        written(objective="[masked_lm, span_boundary]", corruption="span_mask"),
        (
            ":13: ",
            "span_boundary needs boundary_logits, which the head masked_lm does not provide",
            "heads that do: span_b",
        ),
    ),
    "the edges of spans that nothing masks": Refused(
        written(head="span_boundary", objective="[masked_lm, span_boundary]"),
        (
            ":12: ",
            "span_boundary needs span_edges, span_offsets, which no part of this stage provides",
            "parts that do: span_mask",
        ),
    ),
    "pieces of windows in rows that go on": Refused(
        written(layout="contiguous", corruption="[adjacent_halves, token_mask]"),
        (
            ":9: ",
            "adjacent_halves splits windows into segments",
            "rows of contiguous continue from batch to batch; use windows",
        ),
    ),
    "pieces of windows in rows of several documents": Refused(
        written(layout="packed_documents", corruption="[adjacent_halves, token_mask]"),
        (
            ":9: ",
            "adjacent_halves splits windows into segments",
            "rows of packed_documents hold several documents; use windows",
        ),
    ),
    "documents in a body that scores by relative distances": Refused(
        written(
            layout="packed_documents", tokenizer="xlnet_unigram", backbone="{name: transformer, architecture: xlnet}"
        ),
        (
            ":9: ",
            "needs a backbone that is within_documents, and this one (transformer xlnet) is not",
            "transformer gpt2",
        ),
    ),
    "positions that two parts decide": Refused(
        written(layout="packed_documents", corruption="[{name: shift_positions, positions: 512}, token_mask]"),
        (":11: ", "shift_positions provides position_ids, which layout packed_documents provides already"),
    ),
    "positions of a body that reads any length": Refused(
        written(**{**GPT, "backbone": "awd_lstm", "corruption": SHIFTED.format(64)}),
        (":11: ", "shift_positions changes the positions of tokens, and this backbone (awd_lstm) has no table", "bert"),
    ),
    "positions of counted words": Refused(
        written(**{**GPT, "backbone": "ngram", "corruption": SHIFTED.format(64)}).replace(
            "objective: causal_lm\n    strategy: full", "estimate: kneser_ney"
        ),
        (":11: ", "estimated by kneser_ney, in one pass of counting", "remove corruption"),
    ),
    "positions of a body that scores by relative distances": Refused(
        written(
            corruption=SHIFTED.format(64),
            head="permuted_lm",
            objective="permuted_lm",
            backbone="{name: transformer, architecture: xlnet}",
        ),
        (":11: ", "this backbone (transformer xlnet) has no table of positions"),
    ),
    "positions beyond the table": Refused(
        written(corruption=SHIFTED.format(513)),
        (":11: ", "shift_positions counts up to 513 positions, and the backbone has 512"),
    ),
    **ATTENTION,
    "a head on plain text that answers a task": Refused(
        written(head="sequence_classification"),
        (":12: ", "sequence_classification reads labelled examples, but this stage reads plain text", "masked_lm"),
    ),
    "a head for plain text on labels": Refused(
        labelled(head="masked_lm"),
        (":20: ", "masked_lm reads plain text and cannot answer a task; heads that do: ", "sequence_classification"),
        "text_classification",
    ),
    "an evaluation of another family": Refused(
        labelled(JUDGED.format("answer", "calibration")),
        (
            ":24: ",
            "calibration is defined for text_classification; this dataset is pair_classification; ",
            "fit: ",
            "scores",
        ),
        "pair_classification",
    ),
    "an evaluation of models that answer, on one that does not": Refused(
        written(JUDGED.format("general", "scores")),
        (
            ":16: ",
            "stage 'general' was trained without labels, so it cannot be judged on a task",
            "name finetune or compress stages",
        ),
    ),
    "a claim about a stage that is not there": Refused(
        labelled(
            "claims:",
            "  better: {says: It is., published: none, system: answer, baseline: anwser, data: docstrings, metric: f1}",
        ),
        (":25: claims.better.baseline", "there is no stage 'anwser'. Did you mean 'answer'?"),
    ),
    "a teacher that is not named": Refused(
        labelled(objective="match_logits", kind="compress", compression="select_layers"),
        ("teacher: match_logits learns from a teacher: name the teacher stage",),
    ),
    **AUGMENTATION,
    **LENGTHS,
    "a body with two stacks under a head for one": Refused(
        labelled(
            general={
                "tokenizer": "unigram",
                "backbone": "{name: transformer, architecture: t5}",
                "corruption": "sentinel_spans",
                "head": "sequence_to_sequence",
                "objective": "sequence_to_sequence",
            }
        ),
        (":20: ", "sequence_classification needs a backbone that is one_stack", "transformer bert"),
    ),
}


def refused(folder: Path, recipe: str, setting: Setting) -> str:
    """The one sentence with which `recipe` is refused."""
    message = refusal(folder, "meeting", recipe, setting, regime=(RECIPES / "regime.yaml").read_text())
    assert message.startswith(str(folder / "meeting.yaml:"))
    return message


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_refused_with_its_place_the_reason_and_what_fits(case: Refused, tmp_path: Path) -> None:
    check_refusal(refused(tmp_path, case.recipe, Setting(case.family, case.language)), case.says)


@pytest.mark.parametrize("recipe", [written(), labelled(), written(**GPT), written(**STATIC)])
def test_parts_that_meet_are_not_refused(recipe: str, tmp_path: Path) -> None:
    setting = Setting("text_classification", "en")
    assert library_of(tmp_path, meeting=recipe).load("meeting", setting=setting).stages
