"""Columns of vectors: read from jsonl, parquet and text, or refused with their place."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.corpora.examples.values import READ
from pipelines.corpora.reading.flaws import Flaw
from pipelines.corpora.settings.named import NamedCorpus
from pipelines.corpora.shards.tables import TYPES
from pipelines.corpora.steps.declared_columns import flaw_at, read_values
from tests.steps import ROOT

KIND = "list<list<double>>"


@pytest.mark.parametrize("value", [[[1, 2.5], [], [3.0, -1e30]], "[[1, 2.5], [], [3, -1e30]]", [], [[]]])
def test_a_vector_for_each_word_or_an_empty_list(value: Any) -> None:
    read = READ[KIND](value)
    assert read == READ[KIND](read) and all(isinstance(item, float) for one in read for item in one)
    import pyarrow

    assert pyarrow.array([read], type=TYPES[KIND]).to_pylist() == [read]


@pytest.mark.parametrize(
    "value",
    [
        [1.0, 2.0],
        [[1.0], [1.0, 2.0]],
        [["1.0"]],
        [[True]],
        [[None]],
        [[float("nan")]],
        [[1e39]],
        [[10**400]],
        "[[1]",
        3,
    ],
)
def test_what_is_no_list_of_vectors_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="a list of vectors: lists of finite numbers, each empty or as long as"):
        READ[KIND](value)


def test_a_record_of_a_corpus_is_refused_with_its_place() -> None:
    corpus = NamedCorpus.model_validate({"path": "pages.jsonl", "columns": {"tokens": "list<string>", "seen": KIND}})
    flaws: list[Flaw] = []
    flaw = flaw_at("pages.jsonl:7", ROOT, "pages.jsonl:7")
    record = {"tokens": ["a", "b"], "seen": [[1.0], [1.0, 2.0]]}
    assert read_values(record, corpus.columns, flaw, flaws.append) is None
    (found,) = flaws
    assert found.reason == "column of another type"
    assert "the column 'seen' holds [[1.0], [1.0, 2.0]], expected a list of vectors" in found.message
    assert read_values({**record, "seen": [[1], []]}, corpus.columns, flaw, flaws.append) == [["a", "b"], [[1.0], []]]
