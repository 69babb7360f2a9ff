"""The order of segments: nothing is lost, labels are right, and half of the pairs are exchanged."""

from __future__ import annotations

import numpy as np
from scipy.stats import binomtest

from pipelines.parts.corruptions.segment_order import SegmentOrder
from pipelines.parts.corruptions.segment_pairs import UNDIVIDED
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import END, plain, token_ids


def test_the_second_segment_comes_first_half_of_the_time() -> None:
    batch = plain(400, 34)
    result = SegmentOrder().apply(batch, token_ids(), np.random.default_rng(1))
    labels, types = result[Field.SEGMENT_LABELS], result[Field.TOKEN_TYPE_IDS]
    assert set(labels.tolist()) == {0, 1}
    assert binomtest(int(labels.sum()), 400, 0.5).pvalue > 1e-4
    for row, label in enumerate(labels):
        before, after = batch[Field.INPUT_IDS][row].tolist(), result[Field.INPUT_IDS][row].tolist()
        split = int(np.argmax(types[row])) - 1
        assert after[0] == before[0] and after[-1] == after[split] == END
        first, second = after[1:split], after[split + 1 : -1]
        if label:  # [CLS] B [SEP] A [SEP] of [CLS] A x B [SEP]
            assert before[1 : 1 + len(second)] == second and before[-1 - len(first) : -1] == first
        else:
            assert before[1 : 1 + len(first)] == first and before[-1 - len(second) : -1] == second
        assert types[row, split + 1 :].all() and not types[row, : split + 1].any()


def test_a_row_that_cannot_be_divided_is_no_pair() -> None:
    batch = plain(3, 4)
    result = SegmentOrder().apply(batch, token_ids(), np.random.default_rng(1))
    assert (result[Field.SEGMENT_LABELS] == UNDIVIDED).all()
    assert np.array_equal(result[Field.INPUT_IDS], batch[Field.INPUT_IDS])
