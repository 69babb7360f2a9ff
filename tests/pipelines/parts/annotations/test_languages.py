"""The language of every token: one for a corpus, or one for each text of a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from pydantic import ValidationError

from pipelines.errors import DataError
from pipelines.parts.annotations import Annotation
from pipelines.parts.annotations.languages import Languages
from pipelines.parts.heads import Head
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field
from tests.pipelines.parts.annotations.tokenized_texts import values_of, whole

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

ORDER = ("en", "fr", "zh")
PAIRS = [
    {"text_a": "the logging level of a handler", "text_b": "le niveau", "label": "same"},
    {"text_a": "an argument", "text_b": "un argument de la commande", "label": "other"},
]


def test_a_corpus_has_one_language(tokenizer: PreTrainedTokenizerFast) -> None:
    text, tokens = whole("a logger", tokenizer)
    assert values_of(Languages(order=ORDER, of="zh"), text).tolist() == [2] * len(tokens)


@pytest.mark.parametrize("both_orders", [False, True])
def test_each_text_of_a_pair_has_its_own(both_orders: bool, tokenizer: PreTrainedTokenizerFast) -> None:
    part = Languages(order=ORDER, of={"text_a": "en", "text_b": "fr"})
    head = Head.model_validate({"name": "sequence_classification", "both_orders": both_orders})
    task = Task(TaskFamily.model_validate("pair_classification"), ("other", "same"), (part,))
    encoded = head.encode(PAIRS, task, tokenizer, 16)
    batch = encoded.collate(np.arange(2))
    languages = batch[Field("languages")]
    assert languages.shape == batch[Field.INPUT_IDS].shape == (2 + 2 * both_orders, 16)
    for row, (ids, values) in enumerate(zip(batch[Field.INPUT_IDS], languages, strict=True)):
        ends = np.flatnonzero(ids == tokenizer.sep_token_id)
        swapped = both_orders and row % 2
        # a special token has the language of the text that it opens or ends; padding has 0
        assert (values[: ends[0] + 1] == (1 if swapped else 0)).all()
        assert (values[ends[0] + 1 : ends[1] + 1] == (0 if swapped else 1)).all() and not values[ends[1] + 1 :].any()


def test_a_text_of_no_known_language_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    text, _ = whole("a logger", tokenizer)
    with pytest.raises(DataError, match="row 7: the annotation languages knows no language of the text in 'text'"):
        values_of(Languages(order=ORDER, of={"source": "en"}), text)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"order": ["en", "zh"], "of": "zz"}, "'zz' is not in order.*Known: en, zh"),
        ({"order": ["en", "en"], "of": "en"}, "names a language twice"),
        ({"order": ["en"], "of": {"a": "fr"}}, "'fr' is not in order"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Annotation.model_validate({"name": "languages", **options})
