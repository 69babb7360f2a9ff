"""Rows that are too short for a corruption, and texts for a memory: refused when a recipe is loaded."""

from __future__ import annotations

from tests.pipelines.recipe.recipe_texts import Refused, written

REPORT = "  report: {start: general, kind: evaluate, corpus: task, suite: {name: perplexity_with_memory, tokens: 256}}"
LENGTHS = {
    "a fragment longer than the rows": Refused(
        written(
            tokenizer="byte_bpe",
            backbone="{name: transformer, architecture: bart, positions: 64}",
            corruption="{name: masked_fragment, tokens: 40}",
            head="sequence_to_sequence",
            objective="sequence_to_sequence",
        ),
        (":11: ", "masked_fragment: a fragment of 40 tokens is longer than the rows of 32", "raise budget.length"),
    ),
    "dialogues without tokens for their speakers": Refused(
        written(
            "    annotations: speakers",
            corruption="[dialogue_response, token_mask]",
            objective="[masked_lm, response_selection]",
        ),
        (":11: ", "dialogue_response needs a tokenizer with roles; wordpiece has", "fit: dialogue_wordpiece"),
    ),
    "responses without speakers": Refused(
        written(
            tokenizer="dialogue_wordpiece",
            corruption="[dialogue_response, token_mask]",
            objective="[masked_lm, response_selection]",
        ),
        (":11: ", "dialogue_response needs speakers, which no part before it provides", "speakers"),
    ),
    "a memory longer than the evaluation": Refused(
        written(
            REPORT,
            tokenizer="byte_bpe",
            layout="contiguous",
            backbone="{name: transformer_xl, memory_length: 230}",
            corruption="[]",
            head="causal_lm",
            objective="causal_lm",
        ),
        (":16: ", "its memory of 230 tokens is longer than the 224 that come before a text's last row", "raise tokens"),
    ),
}
