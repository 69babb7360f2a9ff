"""Models of other families than texts with classes: under which name they are offered, and that they answer."""

from __future__ import annotations

import json
from pathlib import Path

import pandas
import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.errors import DataError
from pipelines.serving.answering.answerer import Answerer
from pipelines.serving.answering.examples import family_of
from tasks.tracking.names import answering_name
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import Registry
from tests.tasks.answering_folders import save_answering
from tests.tasks.conftest import Builder

TAGS = ("O", "B-name", "I-name")
SENTENCES = [["Solve", "a", "linear", "system"], ["Draw", "samples"]]


@pytest.fixture(scope="module")
def tagger(classifier_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_answering(classifier_folder, tmp_path_factory.mktemp("models") / "tagger", "tagging", "tagging", TAGS)


def test_mlflow_answers_with_a_registered_tagger_as_the_folder_does(root: Path, tagger: Path) -> None:
    builder = Builder(root, tagger)
    made = builder.step("tag", "finetune", data={"train": builder.table("train", ["a"])})
    registry = Registry(Recorder(root))
    assert registry.register_final(builder.store, made.provenance, None, {}) == {"docs-tagging": "1"}
    import mlflow.pyfunc

    model = mlflow.pyfunc.load_model("models:/docs-tagging@candidate")
    told = model.predict(pandas.DataFrame({"tokens": SENTENCES}))
    expected = Answerer(made.folder).answer([{"tokens": tokens} for tokens in SENTENCES])
    assert told == [{"answer": tags} for tags in expected]
    assert [len(tags) for tags in expected] == [4, 2]
    with pytest.raises(Exception, match="tokens"):
        model.predict(pandas.DataFrame({"words": SENTENCES}))


def test_a_classifier_is_what_weighs_the_classes_of_a_text(
    root: Path, classifier_folder: Path, tagger: Path, tmp_path: Path
) -> None:
    writes = tmp_path / "writes"
    writes.mkdir()
    noted = {"head": "text_to_text", "family": {"name": "text_classification"}, "labels": ["a"]}
    (writes / "config.json").write_text(json.dumps({"cursus": noted}))
    names = {
        classifier_folder: "docs-text-classification",
        tagger: "docs-tagging",
        writes: "docs-text-classification-written",
    }
    builder = Builder(root, classifier_folder)
    data = {"train": builder.table("train", ["a"])}
    for folder, name in names.items():
        builder.model = folder
        made = builder.step(folder.name, "finetune", data=data)
        assert answering_name(root, builder.store, made.provenance) == name
    (writes / "config.json").write_text(json.dumps({"cursus": {"head": "masked_lm", "family": None}}))
    with pytest.raises(DataError, match="trained on plain text"):
        family_of(writes)


def test_predict_reads_and_writes_json(tagger: Path) -> None:
    asked = "".join(json.dumps({"tokens": tokens}) + "\n" for tokens in SENTENCES)
    told = CliRunner().invoke(app, ["predict", "--json", "--model", str(tagger)], input=asked)
    assert told.exit_code == 0, told.output
    answers = [json.loads(line)["answer"] for line in told.stdout.splitlines()]
    assert answers == Answerer(tagger).answer([{"tokens": tokens} for tokens in SENTENCES])
    refused = CliRunner().invoke(app, ["predict", "--json", "--model", str(tagger)], input='{"words": []}')
    assert refused.exit_code == 2
    assert "line 1: the column 'tokens' is missing" in refused.stderr
    refused = CliRunner().invoke(app, ["predict", "--model", str(tagger), "a text"])
    assert refused.exit_code == 2
    assert '{"tokens": …}' in refused.stderr


def test_predict_takes_texts_as_json_too(classifier_folder: Path) -> None:
    text = "Solve a linear system."
    arguments = ["predict", "--json", "--model", str(classifier_folder)]
    spoken = CliRunner().invoke(app, [*arguments, text])
    written = CliRunner().invoke(app, arguments, input=json.dumps({"text": text}))
    assert spoken.stdout == written.stdout
    assert set(json.loads(written.stdout)) == {"label", "probabilities"}


def test_a_model_that_is_a_pickle_is_not_opened(tagger: Path, tmp_path: Path) -> None:
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    for path in tagger.iterdir():
        if path.suffix != ".safetensors":
            (pickled / path.name).write_bytes(path.read_bytes())
    (pickled / "pytorch_model.bin").write_bytes(b"cbuiltins\neval\n(S'1/0'\ntR.")
    asked = json.dumps({"tokens": ["a"]})
    refused = CliRunner().invoke(app, ["predict", "--json", "--model", str(pickled)], input=asked)
    assert refused.exit_code == 2
    assert "only safetensors are read" in refused.stderr
