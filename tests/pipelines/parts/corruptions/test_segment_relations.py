"""Three relations of segments: what each label says is so in the text, and each is a third of the pairs."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import binomtest

from pipelines.parts.corruptions.segment_relations import RELATIONS, SegmentRelations
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import END, plain, token_ids
from tests.pipelines.parts.corruptions.test_next_sentence import corpus_rows


def test_labels_say_where_the_second_segment_is_in_the_text() -> None:
    batch = corpus_rows(rows=400)  # each token once in the text, so that its id is its place
    size = int(batch[Field.INPUT_IDS].max()) + 1
    result = SegmentRelations().apply(batch, token_ids(size), np.random.default_rng(2))
    relations, types = result[RELATIONS], result[Field.TOKEN_TYPE_IDS]
    assert Field.SEGMENT_LABELS not in result
    pairs = np.flatnonzero(relations >= 0)
    assert len(pairs) > 300
    for row in pairs:
        split = int(np.argmax(types[row])) - 1
        ids, documents = result[Field.INPUT_IDS][row], result[Field.DOCUMENTS][row]
        assert ids[split] == END and types[row, split + 1 :].all() and not types[row, : split + 1].any()
        first, second = (part[part != END] for part in (ids[1:split], ids[split + 1 : -1]))
        if relations[row] == 2:
            assert not {*documents[1:split]} & {*documents[split + 1 : -1]}
        elif relations[row] == 1:
            assert second.max() < first.min(), "the second segment precedes the first"
        else:
            assert first.max() < second.min(), "the second segment follows the first"
    for label in range(3):
        assert binomtest(int((relations[pairs] == label).sum()), len(pairs), 1 / 3).pvalue > 1e-4


def test_a_row_that_cannot_be_divided_is_no_pair() -> None:
    batch = plain(3, 4)
    result = SegmentRelations().apply(batch, token_ids(), np.random.default_rng(1))
    assert (result[RELATIONS] == -100).all()
    assert np.array_equal(result[Field.INPUT_IDS], batch[Field.INPUT_IDS])


def test_some_second_segments_must_follow() -> None:
    with pytest.raises(ValidationError, match="their sum must be less than 1"):
        SegmentRelations(replaced=0.5, exchanged=0.5)
