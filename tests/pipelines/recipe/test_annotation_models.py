"""Annotations that read the network of another stage: what is refused when the recipe is loaded, and what is
inherited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.parts.annotations import Annotation, ModelAnnotation
from pipelines.recipe.model_annotations import model_annotations
from pipelines.vocabulary import Channel
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled, written
from tests.steps import library_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

READER = "senses_of_trial"


@pytest.fixture(autouse=True)
def reader() -> Iterator[None]:
    class Reader(ModelAnnotation, name=READER):
        @property
        def channels(self) -> tuple[Channel, ...]:
            return (Channel(READER, size=3),)

        def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
            return {READER: self.model.states(text)[:, :3].argmax(1)}

    yield
    del Annotation.members[READER]


def reading(stage: str) -> str:
    return f"{{name: {READER}, from: {stage}}}"


MORE = "  more: {{like: general, annotations: {}}}"
T5 = "{name: transformer, architecture: t5}"
REFUSED = {
    "no stage": (written(MORE.format(READER)), ":16: stages.more.annotations: senses_of_trial: name the stage whose"),
    "an unknown stage": (
        written(MORE.format(reading("generel"))),
        ":16: stages.more.annotations: recipe meeting has no stage 'generel'. Did you mean 'general'?",
    ),
    "an unknown recipe": (written(MORE.format(reading("bret/general"))), "there is no recipe 'bret'"),
    "an unknown stage of a line": (
        written(
            "  more:",
            "    like: general",
            "    lines:",
            f"      one: {{annotations: {reading('generel')}}}",
            "      two: {corpus: domain}",
        ),
        ":19: stages.more.lines.one.annotations: recipe meeting has no stage 'generel'",
    ),
    "a report": (
        labelled(
            "  report: {kind: evaluate, start: answer, corpus: task, suite: scores}", MORE.format(reading("report"))
        ),
        ":25: stages.more.annotations: senses_of_trial: from: report is an evaluate stage, which makes no network",
    ),
    "an encoder-decoder": (
        written(
            f"  more: {{kind: pretrain, corpus: general, tokenizer: wordpiece, backbone: {{name: transformer}},"
            f" annotations: {reading('general')}, corruption: token_mask, head: masked_lm, objective: masked_lm,"
            " strategy: full, budget: {tokens: 8192, batch_tokens: 1024, length: 32}}",
            tokenizer="unigram",
            backbone=T5,
            corruption="sentinel_spans",
            head="sequence_to_sequence",
            objective="sequence_to_sequence",
        ),
        "from: general is a transformer t5, which has no state of its own for each token; backbones that do: ",
    ),
    "itself": (written(MORE.format(reading("more"))), "circular stages: more → more"),
    "a folder of its own": (
        written(MORE.format(f"{{name: {READER}, from: general, folder: 0123456789ab}}")),
        ":16: stages.more.annotations: senses_of_trial: folder is part of saved models; leave it out",
    ),
}


@pytest.mark.parametrize(("recipe", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused(recipe: str, says: str, tmp_path: Path) -> None:
    check_refusal(refusal(tmp_path, "meeting", recipe), (says,))


def test_a_stage_that_starts_there_reads_the_same_model_across_recipes(tmp_path: Path) -> None:
    first = written(MORE.format(reading("general")))
    second = (
        "name: second\nstages:\n  next: {kind: adapt_domain, start: meeting/more, corpus: domain}\n"
        f"  own: {{like: next, annotations: {reading('next')}}}\n"
    )
    stages = library_of(tmp_path, meeting=first, second=second).load("second").stages
    ((role, key, inherited),) = model_annotations(stages["next"])
    assert (role, key, inherited.from_) == ("annotations:0", "annotations", "meeting/general")
    ((_, _, own),) = model_annotations(stages["own"])
    assert own.from_ == "next"
