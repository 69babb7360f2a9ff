"""Test texts are encoded once for all judged models of one tokenizer, and as each one's own tokenizer does it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipelines.judging.evaluations.shared_encodings import SharedEncodings
from pipelines.networks.text_encoder import TextEncoder
from tests.pipelines.judging.evaluations.conftest import Trained


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that a tokenizer has encoded, in order."""
    texts: list[str] = []
    encode = TextEncoder.encode

    def noted(self: TextEncoder, given: Sequence[str]) -> list[list[int]]:
        texts.extend(given)
        return encode(self, given)

    monkeypatch.setattr(TextEncoder, "encode", noted)
    return texts


def test_models_of_one_tokenizer_encode_a_text_once(trained: Trained, encoded: list[str]) -> None:
    texts = [*(text for text, _ in trained.splits["test"]), "", trained.splits["test"][0][0]]
    first, other = (trained.first(stage).folder for stage in ("classify", "int8"))
    expected = TextEncoder(other).encode(texts)
    encoded.clear()
    shared = SharedEncodings()
    assert shared.open(first).encode(texts) == expected
    assert shared.open(other).encode(texts[::-1]) == expected[::-1]
    assert sorted(encoded) == sorted(set(texts))


def test_another_vocabulary_or_length_encodes_again(trained: Trained, tmp_path: Path) -> None:
    folder = trained.first("classify").folder
    texts = [text for text, _ in trained.splits["test"][:20]]
    shared = SharedEncodings()
    assert shared.open(folder).encode(texts) == TextEncoder(folder).encode(texts)
    shorter, other = tmp_path / "shorter", tmp_path / "other"
    for copy in (shorter, other):
        shutil.copytree(folder, copy)
    (shorter / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 8, "pad_token": "[PAD]"}))
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = not tokenizer["normalizer"]["lowercase"]
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    for changed in (shorter, other):
        expected = TextEncoder(changed).encode(texts)
        assert expected != TextEncoder(folder).encode(texts)
        assert shared.open(changed).encode(texts) == expected


def test_no_more_tokens_are_kept_than_stated(trained: Trained, encoded: list[str]) -> None:
    folder = trained.first("classify").folder
    texts = sorted({text for text, _ in trained.splits["test"]})[:20]
    expected = TextEncoder(folder).encode(texts)
    most = sum(map(len, expected[:10]))
    shared = SharedEncodings(most)
    encoder = shared.open(folder)
    assert encoder.encode(texts) == encoder.encode(texts) == expected
    assert 0 < shared.tokens <= most
    encoded.clear()
    assert encoder.encode(texts) == expected
    assert set(encoded) == set(texts[10:])
