"""Predictors answer like the model itself, keep the order, need no torch for ONNX, and never unpickle."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipelines.errors import DataError, RecipeError
from pipelines.serving.answering.inference import load_predictor
from tests.pipelines.judging.evaluations.conftest import Trained
from tests.pipelines.judging.evaluations.tiny_classifier import PACKAGES


def _folders(trained: Trained) -> tuple[Path, Path]:
    return trained.first("classify").folder, trained.first("int8").folder


def test_torch_probabilities_equal_those_of_transformers_one_text_at_a_time(trained: Trained) -> None:
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    folder, _ = _folders(trained)
    texts = [text for text, _ in trained.splits["test"][:40]]
    tokenizer, network = AutoTokenizer.from_pretrained(folder), BertForSequenceClassification.from_pretrained(folder)
    expected = []
    with torch.inference_mode():
        for text in texts:
            batch = tokenizer(text, truncation=True, return_tensors="pt")
            said = network(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
            expected.append(said.logits.softmax(-1)[0].numpy())
    predictor = load_predictor(folder)
    assert predictor.labels == list(PACKAGES)
    assert max(len(tokenizer(text).input_ids) for text in texts) > 48, "no text is long enough to be cut"
    np.testing.assert_allclose(predictor.predict(texts, batch_size=7), np.stack(expected), atol=2e-6)


@pytest.mark.parametrize("form", [0, 1])
def test_order_batch_size_and_empty_input(trained: Trained, form: int) -> None:
    predictor = load_predictor(_folders(trained)[form])
    texts = [text for text, _ in trained.splits["test"][:30]] + [""]
    together = predictor.predict(texts, batch_size=8)
    assert together.dtype == np.float32
    # dynamic 8-bit quantization scales activations over the whole batch
    tolerance = (2e-6, 0.1)[form]
    np.testing.assert_allclose(together, np.concatenate([predictor.predict([text]) for text in texts]), atol=tolerance)
    np.testing.assert_allclose(predictor.predict(texts[::-1], batch_size=8)[::-1], together, atol=tolerance)
    assert predictor.predict([]).shape == (0, len(PACKAGES))


def test_onnx_is_served_without_torch_or_transformers(trained: Trained) -> None:
    program = (
        "import sys; from pathlib import Path; from pipelines.serving.answering.inference import load_predictor;"
        "print(load_predictor(Path(sys.argv[1])).predict(['Run a test case.']).shape);"
        "print(sorted({'torch', 'transformers', 'pandas', 'sklearn'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, str(_folders(trained)[1])], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split("\n")[:2] == ["(1, 4)", "[]"]


def test_unusable_folders_are_refused_with_what_is_wrong(trained: Trained, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with pytest.raises(DataError, match=r"tokenizer\.json is missing"):
        load_predictor(folder)
    shutil.copytree(_folders(trained)[0], folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(RecipeError, match=r"pytorch_model\.bin: a pickle"):
        load_predictor(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(DataError, match="neither model.onnx nor model.safetensors"):
        load_predictor(folder)
    (folder / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(DataError, match=r"model\.onnx: ONNX Runtime cannot read it"):
        load_predictor(folder)


def test_weights_that_do_not_fit_are_refused(trained: Trained, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(_folders(trained)[0], folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(DataError, match=r"missing keys: bert\.encoder\.layer\.2"):
        load_predictor(folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(RecipeError, match="is damaged or not a safetensors file"):
        load_predictor(folder)
