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
from tasks.tracking.names import answering_name, backbone_name, description
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import WARNING, Registry
from tests.tasks.conftest import LABELS, TEXTS, Builder

MODEL, ENCODER = "docs-text-classification", "docs-encoder"
ABOUT = "`int8` of the recipe `regime`"


def test_the_last_models_are_offered_with_their_ancestry(root: Path, builder: Builder) -> None:
    made = builder.regime()
    ends = made["int8"].provenance, made["task"].provenance
    registry = Registry(Recorder(root))
    assert registry.register_final(builder.store, *ends, {"accuracy": 0.58}) == {MODEL: "1", ENCODER: "1"}
    told = registry.register_final(builder.store, *ends, {"accuracy": 0.58}, about=ABOUT)
    assert told == {MODEL: "1", ENCODER: "1"}
    client = registry.recorder.client
    version = client.get_model_version_by_alias(MODEL, "candidate")
    assert version.tags["cursus.fingerprint"] == made["int8"].fingerprint
    assert version.description == ABOUT
    assert len(version.tags) <= 12 and not [tag for tag in version.tags if tag.startswith("cursus.parent.")]
    assert version.tags["cursus.recipe"] == "regime"
    assert version.tags["cursus.score.accuracy"] == "0.5800"
    encoder = client.get_model_version_by_alias(ENCODER, "candidate")
    assert encoder.tags["cursus.fingerprint"] == made["task"].fingerprint
    assert encoder.tags["cursus.dataset"] == "docs"
    assert encoder.source == f"models:/{registry.recorder.model_of(made['task'].fingerprint)}"

    successor = builder.step("int8", "compress", parents={"start": made["small"].fingerprint}, settings={"bits": 4})
    assert registry.register(MODEL, successor.provenance, builder.store, {}) == "2"
    assert registry.resolve(MODEL) == (f"models:/{MODEL}/2", successor.fingerprint)
    assert registry.resolve(f"models:/{MODEL}/1") == (f"models:/{MODEL}/1", made["int8"].fingerprint)
    assert registry.resolve(f"{ENCODER}@candidate") == (f"models:/{ENCODER}/1", made["task"].fingerprint)
    with pytest.raises(CursusError, match=r"no version or alias '7'\. Versions: 2, 1"):
        registry.resolve(f"{MODEL}/7")
    with pytest.raises(CursusError, match=r"no version or alias 'champion'"):
        registry.resolve(f"{MODEL}@champion")
    with pytest.raises(CursusError, match=r"Did you mean 'docs-text-classification'"):
        registry.resolve("docs-text-clasification")
    text = lineage(root, builder.store, MODEL)
    assert text.startswith(f"models:/{MODEL}/2 = int8 {successor.fingerprint}\n")
    assert made["general"].fingerprint[:8] in text


def test_a_model_that_is_not_surely_above_its_baselines_is_tagged(root: Path, builder: Builder) -> None:
    data = {name: builder.table(name, TEXTS) for name in ("train", "general")}
    small = builder.step("small", "compress", data={"train": data["train"]})
    registry = Registry(Recorder(root))
    doubt = "small: accuracy 0.310 [0.250, 0.370] is not surely above the baseline majority class 0.300 [0.240, 0.360]"
    for warning in (doubt, None):  # judged again, the version of the same model loses the tag
        assert registry.register(MODEL, small.provenance, builder.store, {}, warning) == "1"
        version = registry.recorder.client.get_model_version_by_alias(MODEL, "candidate")
        assert version.tags.get(WARNING) == warning
    backbone = builder.step("general", "pretrain", data={"general": data["general"]})
    registry.register_final(builder.store, small.provenance, backbone.provenance, {}, doubt)
    client = registry.recorder.client
    assert client.get_model_version_by_alias(MODEL, "candidate").tags[WARNING] == doubt
    assert WARNING not in client.get_model_version_by_alias(ENCODER, "candidate").tags, "a backbone answers nothing"


def test_a_backbone_is_named_by_its_dataset_and_by_what_it_can_do(root: Path, builder: Builder) -> None:
    bodies = {
        "docs-language-model": {"name": "transformer", "architecture": "gpt2"},
        "docs-encoder-decoder": {"name": "transformer", "architecture": "t5"},
        "docs-word-vectors": {"name": "word_vectors"},
        ENCODER: {"name": "transformer", "architecture": "xlnet"},
    }
    data = {"general": builder.table("general", TEXTS)}
    for name, backbone in bodies.items():
        made = builder.step("general", "pretrain", settings={"backbone": backbone}, data=data)
        assert backbone_name(root, builder.store, made.provenance) == name
        assert description(builder.store, made.provenance)


def test_a_dataset_names_its_models_and_one_that_is_gone_keeps_the_default(root: Path, builder: Builder) -> None:
    data = {"train": builder.table("train", TEXTS)}
    small = builder.step("small", "compress", data=data)
    pairs = builder.step("pairs", "compress", data={"rte.train": data["train"]})
    encoder = builder.step("general", "pretrain", data={"general": data["train"]})
    int8 = builder.step("int8", "compress", parents={"start": small.fingerprint})
    names = {"docs": ("docs-text-classification", "docs-rte", "docs-encoder")}
    for dataset, (whole, one, backbone) in [*names.items(), ("reviews", ("desk", "desk-rte", "desk-encoder"))]:
        # `docs` of params.yaml is called otherwise at first, and then has a name of its own
        key = "docs" if dataset == "reviews" else "others"
        files = "general: a.txt, domain: b.txt, task: {train: c.tsv, test: d.tsv}"
        (root / "params.yaml").write_text(f"datasets: {{{key}: {{model: desk, {files}}}}}\n")
        store = builder.store
        assert answering_name(root, store, small.provenance) == answering_name(root, store, int8.provenance) == whole
        assert answering_name(root, store, pairs.provenance) == one
        assert backbone_name(root, store, encoder.provenance) == backbone


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
    registry.register(MODEL, small.provenance, builder.store, {})
    source = registry.recorder.client.get_model_version_by_alias(MODEL, "candidate").source
    assert source is not None
    model = registry.recorder.client.get_logged_model(source.removeprefix("models:/"))
    packed = Path(model.artifact_location.removeprefix("file://"))
    assert not [path for path in packed.rglob("*") if path.suffix in (".pkl", ".pickle", ".pt", ".bin")]
    assert (packed / "code" / "pipelines" / "serving" / "answering" / "inference.py").exists()

    expected = load_predictor(small.folder).predict(TEXTS)
    with served(f"models:/{MODEL}@candidate") as address:
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
