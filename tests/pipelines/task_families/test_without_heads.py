"""A family that no head answers yet can be prepared, and is refused before anything is fine-tuned on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.parts.heads import Head
from pipelines.recipe.problems import Setting
from pipelines.task_families import TaskFamily
from tests.contracts.families import members
from tests.pipelines.recipe.test_parts_that_cannot_meet import labelled
from tests.steps import ROOT, library_of

ANSWERED = {family for head in members("heads").values() if issubclass(head, Head) for family in head.reads}
UNANSWERED = sorted(set(members("task_families")) - ANSWERED)


@pytest.mark.parametrize("family", UNANSWERED)
def test_fine_tuning_on_it_is_refused_with_the_heads_that_fit_none(tmp_path: Path, family: str) -> None:
    library = library_of(tmp_path, meeting=labelled())
    with pytest.raises(RecipeError, match=rf":20: .*this dataset is {family}; heads that fit: none"):
        library.load("meeting", setting=Setting(family=family))


@pytest.mark.parametrize("family", UNANSWERED)
def test_it_can_be_named_with_its_options(family: str) -> None:
    one = TaskFamily.model_validate({"name": family})
    assert TaskFamily.model_validate(one.model_dump()) == one and one.metrics


def test_the_documentation_names_those_without_a_head() -> None:
    text = " ".join((ROOT / "docs" / "data.md").read_text(encoding="utf-8").split())
    sentence = re.search(r"\)\. ([^.()]*) have no head yet", text)
    assert sentence is not None and sorted(re.findall(r"`(\w+)`", sentence[1])) == UNANSWERED


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("README.md", r"(?P<with>\d+) task families \((?P<named>[^)]*)\).* more families \((?P<others>[^)]*)\)"),
        ("README.zh.md", r"(?P<with>\d+) 类任务（(?P<named>[^）]*)）.*另有.类（(?P<others>[^）]*)）"),
    ],
)
def test_the_first_page_counts_and_names_all(page: str, sentence: str) -> None:
    said = re.search(sentence, " ".join((ROOT / page).read_text(encoding="utf-8").split()))
    assert said is not None and int(said["with"]) == len(ANSWERED)
    assert len(re.split("[,、]", said["named"])) == len(ANSWERED)
    assert len(re.split("[,、]", said["others"])) == len(UNANSWERED)
