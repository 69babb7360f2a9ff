"""A teacher has the vocabulary of its student: known when the recipe is loaded, wherever both learned it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
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
