"""Sources are looked at before anything else, once for each of their states."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import DataError
from tasks.datasets.looking import look_at_new_sources
from tests.pipelines.corpora.small_dataset import write_small_dataset


def test_a_state_is_looked_at_once(tmp_path: Path) -> None:
    write_small_dataset(tmp_path)
    assert [look_at_new_sources("small", tmp_path) for _ in range(2)] == [True, False]
    test = tmp_path / "texts" / "test.jsonl"
    whole = test.read_bytes()
    test.write_bytes(whole + b'{"sentence": "a", "topic": "sports"}\n')
    for _ in range(2):  # a mistake is not remembered as seen
        with pytest.raises(DataError, match="the test split has the label 'sports'"):
            look_at_new_sources("small", tmp_path)
    test.write_bytes(whole)
    assert look_at_new_sources("small", tmp_path)
    params = tmp_path / "params.yaml"
    params.write_text(params.read_text().replace("text: body", "text: bodi"), encoding="utf-8")
    with pytest.raises(DataError, match="domain.csv.*'bodi'"):
        look_at_new_sources("small", tmp_path)
