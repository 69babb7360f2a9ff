"""Two starts of a stage: what they inherit, and what is refused when the recipe is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled
from tests.steps import library_of

OTHER = "  other: {kind: adapt_domain, start: general, corpus: domain}"
BYTES = "  bytes: {like: general, tokenizer: byte_bpe, corpus: domain}"
BOTH = "  both: {{like: answer, start: {}}}"
REFUSED = {
    "one of the two": (
        (BOTH.format("{backbone: general}"),),
        ":24: stages.both.start: start: two stages are written {backbone: <stage>, head: <stage>}",
    ),
    "a third": (
        (BOTH.format("{backbone: general, head: answer, body: general}"),),
        ":24: stages.both.start: start: two stages are written",
    ),
    "a key of its own": (
        ("  both: {like: answer, head_start: answer}",),
        ":24: stages.both: head_start has no key of its own: write start: {backbone: <stage>, head: <stage>}",
    ),
    "an unknown backbone": ((BOTH.format("{backbone: generel, head: answer}"),), "Did you mean 'general'?"),
    "an unknown head": (
        (BOTH.format("{backbone: general, head: anwser}"),),
        ":24: stages.both.start.head: recipe meeting has no stage 'anwser'. Did you mean 'answer'?",
    ),
    "another head": (
        (BOTH.format("{backbone: general, head: general}"),),
        ":24: stages.both.start.head: general has the head masked_lm, and this stage sequence_classification",
    ),
    "a report": (
        (
            "  report: {kind: evaluate, start: answer, corpus: task, suite: scores}",
            BOTH.format("{backbone: general, head: report}"),
        ),
        ":25: stages.both.start.head: stage 'report' is of kind evaluate and produces no model",
    ),
    "lines": (
        (
            "  both: {kind: finetune, start: {backbone: general, head: answer}, strategy: full,",
            "    budget: {epochs: 1, length: 64}, lines: {topic: {corpus: task, head: sequence_classification,",
            "    objective: cross_entropy}}}",
        ),
        ":24: stages.both.start.head: a stage with lines continues the heads of its start",
    ),
    "a circle": ((BOTH.format("{backbone: general, head: both}"),), "circular stages: both → both"),
    "words of another vocabulary": (
        (BYTES, "  words: {like: general, start: {backbone: general, head: bytes}}"),
        ":25: stages.words.start.head: masked_lm scores tokens, those of bytes are {name: byte_bpe} learned from",
    ),
}


@pytest.mark.parametrize(("stages", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_put_together_is_refused(stages: tuple[str, ...], says: str, tmp_path: Path) -> None:
    check_refusal(refusal(tmp_path, "meeting", labelled(*stages)), (says,))


def test_everything_below_the_head_comes_from_the_first(tmp_path: Path) -> None:
    text = labelled(OTHER, BYTES, "  tags: {like: answer, start: bytes}", BOTH.format("{backbone: other, head: tags}"))
    both = library_of(tmp_path, meeting=text).load("meeting").stages["both"]
    assert (both.start, both.head_start) == ("other", "tags")
    assert both.tokenizer is not None and both.tokenizer.name == "wordpiece", "states have no vocabulary"
