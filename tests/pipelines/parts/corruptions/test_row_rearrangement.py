"""ERNIE 2.0's rows: what each class says is so in the text that the row was made of."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from pipelines.errors import RecipeError
from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.discourse_markers import DiscourseMarkers
from pipelines.parts.corruptions.query_relevance import QueryRelevance
from pipelines.parts.corruptions.row_rearrangement import ROW_LABELS, UNLABELLED, RowRearrangement
from pipelines.parts.corruptions.sentence_distance import SentenceDistance
from pipelines.parts.corruptions.sentence_reordering import SentenceReordering
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import END, SPECIAL, plain, token_ids
from tests.pipelines.recipe.test_parts_that_cannot_meet import check_refusal, written
from tests.steps import library_of

ROWS, LENGTH = 600, 34
TEXT = LENGTH - 2


def texts() -> Arrays:
    """Rows that are each a piece of a document of their own, whose ids ascend by one from token to token."""
    begins = len(SPECIAL) + 100 * np.arange(ROWS)[:, None]
    ids = begins + np.arange(LENGTH)
    ids[:, 0], ids[:, -1] = 2, END
    documents = np.tile(np.arange(ROWS)[:, None], LENGTH)
    return {Field.INPUT_IDS: ids, Field.ORIGINAL_IDS: ids, Field.DOCUMENTS: documents}


def rearranged(part: RowRearrangement, seed: int = 1) -> tuple[Arrays, Arrays]:
    batch = texts()
    return batch, part.apply(batch, token_ids(100 * ROWS + 200), np.random.default_rng(seed))


def test_the_class_of_an_order_says_how_to_put_it_right() -> None:
    batch, result = rearranged(SentenceReordering(most=3))
    orders = [order for number in (1, 2, 3) for order in permutations(range(number))]
    assert SentenceReordering(most=3).classes == len(orders) == 9
    labels = result[ROW_LABELS]
    assert set(labels.tolist()) == set(range(9))
    for row in range(ROWS):
        before, after = batch[Field.INPUT_IDS][row], result[Field.INPUT_IDS][row]
        assert sorted(after) == sorted(before) and after[0] == 2 and after[-1] == END
        pieces = np.split(after[1:-1], np.flatnonzero(np.diff(after[1:-1]) != 1) + 1)
        order = np.argsort(np.argsort([piece[0] for piece in pieces])).tolist()
        told = orders[labels[row]]
        if len(pieces) == len(told):
            assert tuple(order) == told
        else:  # adjacent segments that stayed together look like one
            joined = [one for at, one in enumerate(told) if at == 0 or one != told[at - 1] + 1]
            assert order == np.argsort(np.argsort(joined)).tolist()
    numbers = np.array([len(orders[label]) for label in labels])
    assert abs(np.bincount(numbers)[1:] / ROWS - 1 / 3).max() < 0.08


def test_distances_are_those_of_the_text() -> None:
    batch, result = rearranged(SentenceDistance(gap=0.25))
    labels, gap = result[ROW_LABELS], round(0.25 * TEXT)
    assert abs(np.bincount(labels, minlength=3) / ROWS - 1 / 3).max() < 0.08
    assert (result[Field.ATTENTION_MASK].sum(1) == LENGTH - gap).all(), "length says nothing of the class"
    for row, label in enumerate(labels):
        ids, types = result[Field.INPUT_IDS][row], result[Field.TOKEN_TYPE_IDS][row]
        split = int(np.argmax(types)) - 1
        first, second = ids[1:split], ids[split + 1 : LENGTH - gap - 1]
        assert ids[split] == END == ids[LENGTH - gap - 1] and (ids[LENGTH - gap :] == 0).all()
        assert len(first) >= TEXT / 4 - 2 and len(second) >= TEXT / 4 - 2
        if label == 2:
            assert second[0] // 100 != first[0] // 100
        else:  # the token that divides the row took the place of one
            assert second[0] - first[-1] == (2 if label == 0 else 2 + gap)
    assert (batch[Field.INPUT_IDS] == texts()[Field.INPUT_IDS]).all()


def test_queries_are_of_the_text_of_its_document_or_of_others() -> None:
    _, result = rearranged(QueryRelevance(share=0.2))
    labels, size = result[ROW_LABELS], round(0.2 * TEXT)
    assert abs(np.bincount(labels, minlength=3) / ROWS - 1 / 3).max() < 0.08
    shuffled = 0
    for row, label in enumerate(labels):
        ids = result[Field.INPUT_IDS][row]
        query, text = set(ids[1 : 1 + size].tolist()), set(ids[2 + size : -1].tolist())
        assert ids[1 + size] == END and len(query) == size
        shuffled += sorted(query) != ids[1 : 1 + size].tolist()
        first = min(text)
        if label == 0:
            assert query <= text
        elif label == 1:
            assert query == set(range(first - size - 1, first - 1)), "what stood before the token that divides"
        else:
            assert not {one // 100 for one in query} & {one // 100 for one in text}
    assert shuffled > 0.95 * ROWS


def test_rows_at_the_end_of_a_document_have_no_class() -> None:
    for part in (SentenceDistance(), QueryRelevance()):
        batch = texts()
        batch[Field.INPUT_IDS] = batch[Field.ORIGINAL_IDS] = batch[Field.INPUT_IDS].copy()
        batch[Field.INPUT_IDS][3, 9] = END
        result = part.apply(batch, token_ids(100 * ROWS + 200), np.random.default_rng(0))
        assert result[ROW_LABELS][3] == UNLABELLED and (result[ROW_LABELS] != UNLABELLED).sum() == ROWS - 1
        assert np.array_equal(result[Field.INPUT_IDS][3], batch[Field.INPUT_IDS][3])
    short = SentenceReordering().apply(plain(4, 5), token_ids(), np.random.default_rng(0))
    assert (short[ROW_LABELS] == UNLABELLED).all()


def marked(texts: tuple[str, ...]) -> TokenIds:
    return TokenIds(40, 4, SPECIAL, end=END, texts=texts)


def test_the_marker_that_divides_a_row_is_its_class_and_is_gone() -> None:
    strings = tuple(f"t{number}" for number in range(38)) + ("but", "Ġbecause")
    batch = plain(200, 20, size=38)
    batch[Field.INPUT_IDS] = batch[Field.ORIGINAL_IDS] = batch[Field.INPUT_IDS].copy()
    at = np.random.default_rng(0).integers(6, 14, size=200)
    chosen = np.random.default_rng(1).integers(3, size=200)  # but, because, none
    for row in np.flatnonzero(chosen < 2):
        batch[Field.INPUT_IDS][row, at[row]] = 38 + chosen[row]
    part = DiscourseMarkers(markers=("because", "but"))
    result = part.apply(batch, marked(strings), np.random.default_rng(2))
    assert part.classes == 2 and np.array_equal(result[ROW_LABELS], np.array([1, 0, UNLABELLED])[chosen])
    assert not np.isin(result[Field.INPUT_IDS], (38, 39)).any() and not np.isin(result[Field.ORIGINAL_IDS], 39).any()
    for row in np.flatnonzero(chosen < 2):
        assert (
            result[Field.INPUT_IDS][row, at[row]] == END and result[Field.TOKEN_TYPE_IDS][row].argmax() == at[row] + 1
        )
    with pytest.raises(RecipeError, match="none of because, but is a token of the vocabulary; name markers"):
        part.apply(batch, marked(("a",) * 40), np.random.default_rng(2))


HEADS: dict[str, tuple[str, Callable[[], tuple[str, ...]]]] = {
    "nine orders": ("sentence_reordering", lambda: ("sentence_reordering labels 9 classes", "set classes: 9")),
    "markers": ("discourse_markers", lambda: ("discourse_markers labels 14 classes", "scores 3")),
}


@pytest.mark.parametrize("case", HEADS)
def test_heads_with_too_few_classes_are_refused(case: str, tmp_path: Path) -> None:
    corruption, says = HEADS[case]
    recipe = written(corruption=corruption).replace("head: masked_lm", "head: row_classes")
    recipe = recipe.replace("objective: masked_lm", "objective: row_classes")
    with pytest.raises(RecipeError) as refused:
        library_of(tmp_path, meeting=recipe).load("meeting")
    check_refusal(str(refused.value), ("head", *says()))


def test_shares_and_numbers_out_of_range_are_refused() -> None:
    for part, options in ((SentenceReordering, {"most": 1}), (SentenceDistance, {"gap": 0.9})):
        with pytest.raises(ValidationError):
            part.model_validate(options)
