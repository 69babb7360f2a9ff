"""The registry: what is offered, under which tags, and that MLflow's own server answers with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import psutil
import pytest

from pipelines.errors import CursusError
from pipelines.serving.answering.inference import load_predictor
from tasks.models.ancestry import lineage
from tasks.servers.processes import Process, free_port, stop, tree, wait_until_answers
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import CLASSIFIER, ENCODER, WARNING, Registry, backbone_model_name, description
from tests.tasks.conftest import LABELS, TEXTS, Builder


def test_the_last_models_are_offered_with_their_ancestry(root: Path, builder: Builder) -> None:
    made = builder.regime()
    ends = made["int8"].provenance, made["task"].provenance
    registry = Registry(Recorder(root))
    assert registry.register_final(builder.store, *ends, {"accuracy": 0.58}) == {CLASSIFIER: "1", ENCODER: "1"}
    assert registry.register_final(builder.store, *ends, {"accuracy": 0.58}) == {CLASSIFIER: "1", ENCODER: "1"}
    client = registry.recorder.client
    version = client.get_model_version_by_alias(CLASSIFIER, "candidate")
    assert version.tags["cursus.fingerprint"] == made["int8"].fingerprint
    assert version.tags["cursus.parent.start"] == made["small"].fingerprint
    assert version.tags["cursus.recipe"] == "regime"
    assert version.tags["cursus.score.accuracy"] == "0.5800"
    encoder = client.get_model_version_by_alias(ENCODER, "candidate")
    assert encoder.tags["cursus.fingerprint"] == made["task"].fingerprint
    assert encoder.tags["cursus.dataset"] == "docs"
    assert encoder.source == f"models:/{registry.recorder.model_of(made['task'].fingerprint)}"

    successor = builder.step("int8", "compress", parents={"start": made["small"].fingerprint}, settings={"bits": 4})
    assert registry.register(CLASSIFIER, successor.provenance, builder.store, {}) == "2"
    assert registry.resolve(CLASSIFIER) == (f"models:/{CLASSIFIER}/2", successor.fingerprint)
    assert registry.resolve(f"models:/{CLASSIFIER}/1") == (f"models:/{CLASSIFIER}/1", made["int8"].fingerprint)
    assert registry.resolve(f"{ENCODER}@candidate") == (f"models:/{ENCODER}/1", made["task"].fingerprint)
    with pytest.raises(CursusError, match=r"no version or alias '7'\. Versions: 2, 1"):
        registry.resolve(f"{CLASSIFIER}/7")
    with pytest.raises(CursusError, match=r"no version or alias 'champion'"):
        registry.resolve(f"{CLASSIFIER}@champion")
    with pytest.raises(CursusError, match=r"Did you mean 'cursus-classifier'"):
        registry.resolve("cursus-clasifier")
    text = lineage(root, builder.store, CLASSIFIER)
    assert text.startswith(f"models:/{CLASSIFIER}/2 = int8 {successor.fingerprint}\n")
    assert made["general"].fingerprint[:8] in text


def test_a_model_that_is_not_surely_above_its_baselines_is_tagged(root: Path, builder: Builder) -> None:
    small = builder.step("small", "compress")
    registry = Registry(Recorder(root))
    doubt = "small: accuracy 0.310 [0.250, 0.370] is not surely above the baseline majority class 0.300 [0.240, 0.360]"
    for warning in (doubt, None):  # judged again, the version of the same model loses the tag
        assert registry.register(CLASSIFIER, small.provenance, builder.store, {}, warning) == "1"
        version = registry.recorder.client.get_model_version_by_alias(CLASSIFIER, "candidate")
        assert version.tags.get(WARNING) == warning
    backbone = builder.step("general", "pretrain")
    registry.register_final(builder.store, small.provenance, backbone.provenance, {}, doubt)
    client = registry.recorder.client
    assert client.get_model_version_by_alias(CLASSIFIER, "candidate").tags[WARNING] == doubt
    assert WARNING not in client.get_model_version_by_alias(ENCODER, "candidate").tags, "a backbone answers nothing"


def test_a_body_is_named_by_what_it_can_do(builder: Builder) -> None:
    bodies = {
        "cursus-language-model": {"name": "transformer", "architecture": "gpt2"},
        "cursus-encoder-decoder": {"name": "transformer", "architecture": "t5"},
        "cursus-word-vectors": {"name": "word_vectors"},
        ENCODER: {"name": "transformer", "architecture": "xlnet"},
    }
    for name, backbone in bodies.items():
        made = builder.step("general", "pretrain", settings={"backbone": backbone})
        assert backbone_model_name(made.provenance) == name
        assert description(name)


@contextmanager
def served(model: str) -> Iterator[str]:
    """The address of `mlflow models serve` answering for `model`, as a user would start it."""
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", model, "--env-manager", "local"]
    # MLflow starts `uvicorn` by its bare name: the environment has to be an activated one
    activated = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with subprocess.Popen([*command, "-h", "127.0.0.1", "-p", str(port)], env=activated) as child:
        process = Process(pid=child.pid, created=psutil.Process(child.pid).create_time())
        try:
            assert wait_until_answers(f"http://127.0.0.1:{port}/ping", process, seconds=180)
            yield f"http://127.0.0.1:{port}/invocations"
        finally:
            stop(tree(process))


def ask(address: str, question: Any) -> Any:
    request = urllib.request.Request(
        address, json.dumps(question).encode(), headers={"Content-Type": "application/json"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as response:
        return json.load(response)["predictions"]


def test_mlflow_serves_the_registered_classifier(root: Path, builder: Builder) -> None:
    small = builder.step("small", "compress")
    registry = Registry(Recorder(root))
    registry.register(CLASSIFIER, small.provenance, builder.store, {})
    source = registry.recorder.client.get_model_version_by_alias(CLASSIFIER, "candidate").source
    assert source is not None
    model = registry.recorder.client.get_logged_model(source.removeprefix("models:/"))
    packed = Path(model.artifact_location.removeprefix("file://"))
    assert not [path for path in packed.rglob("*") if path.suffix in (".pkl", ".pickle", ".pt", ".bin")]
    assert (packed / "code" / "pipelines" / "serving" / "answering" / "inference.py").exists()

    expected = load_predictor(small.folder).predict(TEXTS)
    with served(f"models:/{CLASSIFIER}@candidate") as address:
        listed = ask(address, {"inputs": TEXTS})
        framed = ask(address, {"dataframe_split": {"columns": ["text"], "data": [[text] for text in TEXTS]}})
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(address, {"dataframe_records": [{"words": "no such column"}]})
        refused.value.close()
        assert refused.value.code == 400
    assert listed == framed
    assert [answer["label"] for answer in listed] == [LABELS[int(row.argmax())] for row in expected]
    found = [[answer["probabilities"][label] for label in LABELS] for answer in listed]
    numpy.testing.assert_allclose(found, expected, atol=1e-5)
