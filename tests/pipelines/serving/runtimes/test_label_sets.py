"""A model of several labels for a text is served, exported and asked like others, and never as exclusive classes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.errors import DataError
from pipelines.models.opening import ModelRecord, build_network, open_config
from pipelines.models.text_network import OutputKind, output_kind
from pipelines.parts.heads import Head
from pipelines.serving.answering.answerer import Answerer
from pipelines.serving.answering.inference import load_predictor
from pipelines.serving.exporting.export import ExportLimits, export
from pipelines.serving.exporting.export_data import export_data
from pipelines.task_families import TaskFamily
from tests.pipelines.judging.evaluations.tiny_classifier import documentation, train_classifier
from tests.pipelines.serving.runtimes.tiny_folders import TOKENIZER

LABELS = ("array", "function", "text")
LIMITS = ExportLimits(rounds=1, shapes=((1, 16),), least_cosine=0.9999, only=("torch_fp32",))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model with weights large enough that its answers differ."""
    folder = tmp_path_factory.mktemp("label_sets")
    classifier = train_classifier(folder / "classifier", documentation()["train"], seed=3, steps=1)
    family = TaskFamily.model_validate("label_sets")
    record = ModelRecord(head=Head.model_validate("label_sets"), family=family, labels=LABELS)
    torch.manual_seed(1)
    network = build_network(record, open_config(classifier))
    for parameter in network.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    network.save_pretrained(folder / "model")
    for name in TOKENIZER:
        shutil.copyfile(classifier / name, folder / "model" / name)
    return folder / "model"


def test_an_export_gives_the_same_probabilities(model: Path, tmp_path: Path) -> None:
    rows = [{"text": text, "labels": []} for text, _ in documentation()["test"][:24]]
    before = Answerer(model).answer(rows)
    assert all(set(one) == set(LABELS) for one in before) and len({tuple(one) for one in before}) > 1
    record = export(model, tmp_path / "out", export_data(model, "texts", rows, rows), LIMITS)
    assert output_kind(model) is OutputKind.LABELS and record.output == "labels"
    after = Answerer(tmp_path / "out").answer(rows)
    np.testing.assert_allclose([[one[label] for label in LABELS] for one in after],
                               [[one[label] for label in LABELS] for one in before], atol=1e-5)  # fmt: skip
    asked = json.dumps({"text": rows[0]["text"]})
    said = CliRunner().invoke(app, ["predict", "--json", "--model", str(tmp_path / "out")], input=asked)
    assert said.exit_code == 0 and set(json.loads(said.stdout)["answer"]) == set(LABELS), said.output


def test_it_is_no_classifier_of_exclusive_classes(model: Path) -> None:
    with pytest.raises(DataError, match="its labels do not exclude each other; open it with Answerer"):
        load_predictor(model)
