"""The blind draw: as many as asked, each once, from everywhere alike; another seed draws others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pipelines.corpora.selections import Pool, Selection
from pipelines.errors import DataError


def pool(sizes: list[int]) -> Pool:
    return Pool({Path(str(n)): size for n, size in enumerate(sizes)}, {}, lambda *_: [], Path())


def draw(sizes: list[int], **said: object) -> np.ndarray:
    return Selection.model_validate({"name": "random_texts"} | said).select(pool(sizes)).chosen


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any), st.data())
def test_as_many_as_asked_each_once(sizes: list[int], data: st.DataObject) -> None:
    wanted = data.draw(st.integers(1, sum(sizes)))
    chosen = draw(sizes, texts=wanted)
    assert len(chosen) == sum(sizes) and chosen.sum() == wanted
    assert (draw(sizes, texts=wanted) == chosen).all()


def test_every_text_is_as_likely() -> None:
    times = sum(draw([30, 70], texts=20, seed=seed).astype(int) for seed in range(200))
    assert times.sum() == 4000
    # a text is drawn 40 times of 200, give or take 4 standard deviations of 5.7
    assert times.min() > 15 and times.max() < 65
    assert 0.27 < times[:30].sum() / 4000 < 0.33


def test_more_than_there_are_is_told() -> None:
    with pytest.raises(DataError, match="random_texts requests 11 texts, but the domain corpus has 10; request fewer"):
        draw([4, 6], texts=11)


@pytest.mark.parametrize("said", [{}, {"texts": 3, "matching": "nearest"}])
def test_how_many_is_said_one_way(said: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=r"give either texts \(a number\) or matching"):
        Selection.model_validate({"name": "random_texts"} | said)
