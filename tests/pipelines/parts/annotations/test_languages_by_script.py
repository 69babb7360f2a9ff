"""The language of a text by its script."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from pydantic import ValidationError

from pipelines.parts.annotations.languages_by_script import LanguagesByScript, script_of
from pipelines.parts.heads import Head
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field
from tests.pipelines.parts.annotations.tokenized_texts import values_of, whole

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PART = LanguagesByScript(order=("en", "zh", "el"), scripts={"latin": "en", "han": "zh", "greek": "el"})


@pytest.mark.parametrize(
    ("text", "language"),
    [("a logger", 0), ("\u65e5\u5fd7", 1), ("\u65e5\u5fd7 a", 1), ("\u03b1\u03b2\u03b3 x\u00b2", 2), ("1 + 2", 0)],
)
def test_most_letters_decide(text: str, language: int, tokenizer: PreTrainedTokenizerFast) -> None:
    tokenized, tokens = whole(text, tokenizer)
    assert values_of(PART, tokenized).tolist() == [language] * len(tokens)


def test_scripts_are_those_of_unicode() -> None:
    assert [script_of(one) for one in "e\u00e9\u10d0\u4e00\u3042\u0436 1!"] == [
        "latin", "latin", "georgian", "han", "hiragana", "cyrillic", "", "", "",
    ]  # fmt: skip


def test_every_example_has_its_own(tokenizer: PreTrainedTokenizerFast) -> None:
    rows = [{"text": "the level of a handler", "label": "x"}, {"text": "\u65e5\u5fd7\u7684\u7ea7\u522b", "label": "y"}]
    task = Task(TaskFamily.model_validate("text_classification"), ("x", "y"), (PART,))
    encoded = Head.model_validate("sequence_classification").encode(rows, task, tokenizer, 16)
    batch = encoded.collate(np.arange(2))
    for language, (values, mask) in enumerate(
        zip(batch[Field.of_channel("languages")], batch[Field.ATTENTION_MASK], strict=True)
    ):
        assert set(values[mask == 1].tolist()) == {language}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"order": ["en"], "scripts": {"latn": "en"}}, "no letter is called 'latn'. Did you mean 'latin'?"),
        ({"order": ["en"], "scripts": {"latin": "fr"}}, "'fr' is not in order"),
        ({"order": ["en", "en"], "scripts": {"latin": "en"}}, "names a language twice"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        LanguagesByScript.model_validate(options)
    assert says in str(refused.value)
