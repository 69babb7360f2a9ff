"""A teacher has the vocabulary of its student: known when the recipe is loaded, wherever both learned it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled
from tests.steps import library_of

STUDENT = "  student: {{like: {like}, start: {start}, teacher: {teacher}, objective: match_hidden}}"
ALIKE = {
    "the stage that both start from": ("answer", "general", "general"),
    "the same text of another recipe": ("answer", "general", "other/answer"),
    "one that continues it without its weights": ("answer", "{untrained: general}", "answer"),
    "one that learns the same tokenizer again": ("general", "null", "general"),
}
OTHERWISE = {
    "another corpus": ("again", "  again: {like: general, corpus: domain}", "{name: wordpiece} learned from domain"),
    "another size": (
        "again",
        "  again: {like: general, tokenizer: {name: wordpiece, vocab_size: 512}}",
        "{name: wordpiece, vocab_size: 512} learned from general",
    ),
    "words that were added": (
        "more",
        "  more: {kind: adapt_domain, start: general, corpus: domain, vocabulary: {tokens: 1000}}",
        "{name: wordpiece} learned from general, with 1,000 words of domain",
    ),
}


@pytest.mark.parametrize(("like", "start", "teacher"), ALIKE.values(), ids=ALIKE)
def test_the_same_tokens_are_not_refused(like: str, start: str, teacher: str, tmp_path: Path) -> None:
    text = labelled(STUDENT.format(like=like, start=start, teacher=teacher))
    recipe = library_of(tmp_path, meeting=text, other=labelled()).load("meeting")
    assert recipe.stages["student"].teacher == teacher


@pytest.mark.parametrize(("teacher", "stage", "described"), OTHERWISE.values(), ids=OTHERWISE)
def test_other_tokens_are_refused(teacher: str, stage: str, described: str, tmp_path: Path) -> None:
    text = labelled(stage, STUDENT.format(like="answer", start="general", teacher=teacher))
    line = 1 + text.splitlines().index(STUDENT.format(like="answer", start="general", teacher=teacher))
    with pytest.raises(RecipeError) as raised:
        library_of(tmp_path, meeting=text).load("meeting")
    message = str(raised.value)
    assert f"meeting.yaml:{line}: stages.student.teacher: {teacher} reads tokens of {described}" in message, message
    assert "those of {name: wordpiece} learned from general:" in message and "\n" not in message


WORDS = "  words: {kind: finetune, corpus: task, tokenizer: words, backbone: bilstm, head: sequence_classification,"
OWN = "    teacher: answer, teacher_vocabulary: own_tokens, strategy: full, budget: {epochs: 1, length: 64},"
UNALIGNED = {
    "hidden states": (
        (WORDS, OWN, "    objective: [cross_entropy, match_hidden]}"),
        (
            ":26: stages.words.objective: match_hidden matches hidden_states token by token, and with "
            "teacher_vocabulary: own_tokens the teacher has other tokens",
            "can be matched: logits, pooled, score",
        ),
    ),
    "plain text": (
        ("  words: {like: general, tokenizer: byte_bpe, teacher: general, teacher_vocabulary: own_tokens,",)
        + ("    objective: [masked_lm, match_token_logits]}",),
        (":24: stages.words.teacher_vocabulary: own_tokens: rows of plain text are windows", "use shared_tokens"),
    ),
    "a teacher without a task": (
        (WORDS, OWN.replace("teacher: answer", "teacher: general"), "    objective: match_logits}"),
        (
            ":25: stages.words.teacher: general is to read examples in tokens of its own, and its head masked_lm reads "
            "plain text; name a stage with one of the heads ",
            "sequence_classification",
        ),
    ),
    "what the teacher does not say": (
        (
            "  scored: {like: answer, head: regression, objective: squared_error}",
            WORDS,
            OWN.replace("teacher: answer", "teacher: scored"),
            "    objective: match_logits}",
        ),
        (":26: stages.words.teacher: match_logits matches logits, which scored does not provide with its head",),
    ),
    "no teacher": (
        (WORDS, OWN.replace("teacher: answer, ", ""), "    objective: cross_entropy}"),
        (":25: stages.words.teacher_vocabulary: this maps the tokens of a teacher, and there is none",),
    ),
}


@pytest.mark.parametrize(("stages", "says"), UNALIGNED.values(), ids=UNALIGNED)
def test_what_has_no_counterpart_in_other_tokens_is_refused(
    stages: tuple[str, ...], says: tuple[str, ...], tmp_path: Path
) -> None:
    check_refusal(refusal(tmp_path, "meeting", labelled(*stages)), says)


def test_a_teacher_may_read_tokens_of_its_own(tmp_path: Path) -> None:
    text = labelled(WORDS, OWN, "    objective: [cross_entropy, match_logits]}")
    assert library_of(tmp_path, meeting=text).load("meeting").stages["words"].teacher_vocabulary == "own_tokens"
