"""Eight-bit ONNX: small, alike, alone in its folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from pipelines.errors import StageError
from pipelines.models.classifier import load_classifier
from pipelines.models.opening import ModelRecord, build_network
from pipelines.parts.compressions import Compression
from pipelines.parts.compressions.dynamic_int8 import DynamicInt8
from pipelines.parts.heads import Head
from pipelines.serving.answering.inference import open_predictor
from pipelines.task_families import TaskFamily
from tests.pipelines.judging.evaluations.tiny_classifier import PACKAGES, documentation, train_classifier


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_classifier(tmp_path_factory.mktemp("int8") / "source", documentation()["train"], seed=3, steps=100)


@pytest.fixture(scope="module")
def converted(source: Path) -> Path:
    compression = Compression.model_validate("dynamic_int8")
    assert compression.replaces_weights
    compression.convert(source, load_classifier(source), source.parent / "converted")
    return source.parent / "converted"


def test_only_served_files_are_left(source: Path, converted: Path) -> None:
    assert sorted(path.name for path in converted.iterdir()) == [
        "config.json",
        "model.onnx",
        "quantization.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    # this network is so small that its graph weighs a tenth of its weights; larger ones come close to a quarter
    assert (converted / "model.onnx").stat().st_size < 0.33 * (source / "model.safetensors").stat().st_size


def test_every_large_weight_is_eight_bit_and_no_path_of_this_machine_is_kept(converted: Path) -> None:
    model = onnx.load(converted / "model.onnx")
    floats = [tensor for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT]
    assert max(int(np.prod(tensor.dims)) for tensor in floats) <= 128
    written = (converted / "model.onnx").read_bytes()
    assert b"site-packages" not in written
    assert b'File "' not in written
    assert {entry.domain: entry.version for entry in model.opset_import}[""] == 20


def test_answers_are_those_of_the_source_at_every_shape(source: Path, converted: Path) -> None:
    texts = [text for text, _ in documentation()["test"]]
    before, after = open_predictor(source), open_predictor(converted)
    for size in (1, 3, 32):
        first, second = before.predict(texts[:96], size), after.predict(texts[:96], size)
        cosine = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
        assert cosine.mean() > 0.995
        assert (first.argmax(1) == second.argmax(1)).mean() > 0.95
    record = json.loads((converted / "quantization.json").read_text())
    assert record["cosine_mean"] > 0.99
    assert 0.8 < record["same_class"] <= 1


def test_the_classifier_of_this_house_converts_too(source: Path, tmp_path: Path) -> None:
    """Mean pooling over a mask, and a body under the architecture's own name."""
    import torch
    from transformers import BertConfig

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=1500, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    folder = tmp_path / "source"
    head = Head.model_validate({"name": "sequence_classification", "pooling": "mean"})
    record = ModelRecord(head=head, family=TaskFamily.default(), labels=tuple(PACKAGES))
    build_network(record, config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(source / name, folder)
    DynamicInt8().convert(folder, load_classifier(folder), tmp_path / "out")
    texts = [text for text, _ in documentation()["test"][:20]]
    before, after = open_predictor(folder), open_predictor(tmp_path / "out")
    assert before.labels == after.labels == list(PACKAGES)
    np.testing.assert_allclose(before.predict(texts, 6), after.predict(texts, 6), atol=0.01)


def test_a_conversion_that_changes_the_answers_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="least_cosine 1.0; serve this model in float32"):
        DynamicInt8(least_cosine=1.0).convert(source, load_classifier(source), tmp_path / "out")
