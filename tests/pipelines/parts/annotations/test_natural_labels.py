"""Labels that texts carry: the tokens of marks by hand, and rows that have them as their class."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pydantic import ValidationError

from pipelines.errors import RecipeError
from pipelines.parts.annotations.natural_labels import NaturalLabels
from pipelines.parts.corruptions.natural_labels import NATURAL_LABELS, NaturalLabelsCorruption
from pipelines.parts.corruptions.row_rearrangement import ROW_LABELS, UNLABELLED
from pipelines.vocabulary import Field
from tests.pipelines.parts.annotations.tokenized_texts import by_word, values_of, whole
from tests.pipelines.parts.corruptions.rows import MASK, plain, token_ids
from tests.pipelines.recipe.test_parts_that_cannot_meet import check_refusal, written
from tests.steps import library_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

LINKS = NaturalLabels(pattern=r"\b(?:numpy|scipy)\.(\w+)", labels=("linalg", "stats"))
TEXT = "See numpy.linalg and scipy.Stats; other.stats and numpy.random are no links of ours."


def test_the_tokens_of_a_mark_have_its_label(tokenizer: PreTrainedTokenizerFast) -> None:
    text, tokens = whole(TEXT, tokenizer)
    values = values_of(LINKS, text)
    for (begin, end), value in zip(text.spans.tolist(), values.tolist(), strict=True):
        inside = [number for number, name in ((1, "linalg"), (2, "Stats"))
                  if begin < TEXT.index(name) + len(name) and end > TEXT.index(name)]  # fmt: skip
        assert [value] == (inside or [0])
    assert len(tokens) == len(values) and {0, 1, 2} == set(values.tolist())


def test_a_mark_may_be_a_whole_match_at_a_line(tokenizer: PreTrainedTokenizerFast) -> None:
    headings = NaturalLabels(pattern=r"^(?:Notes|Returns)$", labels=("returns", "notes"))
    text, _ = whole("Notes on\nNotes\nReturns", tokenizer)
    marked = text.spans[:, 0]
    values = values_of(headings, text)
    assert set(values[marked < 9].tolist()) == {0} and values[-1] == 1
    assert set(values[(marked >= 9) & (marked < 14)].tolist()) == {2}


def test_words_are_read_one_by_one(tokenizer: PreTrainedTokenizerFast) -> None:
    stars = NaturalLabels(pattern=r"^([1-5])/5$", labels=("1", "2", "3", "4", "5"))
    words = ["a", "4/5", "film", "14/5"]
    text, _ = by_word(words, tokenizer)
    assert text.words is not None
    values = values_of(stars, text)
    assert {word: set(values[text.words == number].tolist()) for number, word in enumerate(words)} == {
        "a": {0}, "4/5": {4}, "film": {0}, "14/5": {0}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "labels", "message"),
    [
        ("(", ("a", "b"), "not a regular expression"),
        ("(a)(b)", ("a", "b"), "one group says where the mark is, got 2"),
        ("a", ("A", "a"), "the label 'a' is given twice"),
        ("a", ("a",), "at least 2 items"),
    ],
)
def test_patterns_that_say_nothing_are_refused(pattern: str, labels: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        NaturalLabels(pattern=pattern, labels=labels)


def test_a_row_has_the_class_of_one_of_its_marks_and_none_of_their_tokens() -> None:
    batch = plain(3, 8)
    marks = np.array([[0, 2, 2, 0, 1, 0, 0, 0], [0] * 8, [3, 0, 0, 0, 0, 0, 3, 3]], dtype=np.uint8)
    part, drawn = NaturalLabelsCorruption(classes=3), Counter[int]()
    for seed in range(300):
        result = part.apply({**batch, NATURAL_LABELS: marks}, token_ids(), np.random.default_rng(seed))
        # the first and the last token of a row are special ones, which keep what they are
        hidden = (marks > 0) & (np.arange(8) > 0) & (np.arange(8) < 7)
        assert np.array_equal(result[Field.INPUT_IDS], np.where(hidden, MASK, batch[Field.INPUT_IDS]))
        assert result[ROW_LABELS][1:].tolist() == [UNLABELLED, 2]
        drawn[int(result[ROW_LABELS][0])] += 1
    assert drawn.keys() == {0, 1} and drawn[1] / 300 == pytest.approx(2 / 3, abs=0.1)


def test_more_labels_than_classes_are_refused() -> None:
    batch = {**plain(1, 6), NATURAL_LABELS: np.array([[0, 0, 3, 0, 0, 0]])}
    with pytest.raises(RecipeError, match="natural_labels: a mark has label 3 of the annotation, and classes is 2"):
        NaturalLabelsCorruption().apply(batch, token_ids(), np.random.default_rng(0))


def test_labels_without_their_annotation_are_refused(tmp_path: Path) -> None:
    recipe = written(corruption="natural_labels").replace("head: masked_lm", "head: {name: row_classes, classes: 2}")
    with pytest.raises(RecipeError) as refused:
        library_of(tmp_path, meeting=recipe).load("meeting")
    check_refusal(str(refused.value), ("corruption", "natural_labels needs natural_labels, which no part before it"))
