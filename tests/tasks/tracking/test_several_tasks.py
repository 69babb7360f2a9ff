"""A model of several tasks: its registered name, what MLflow serves, and that all heads stand on one backbone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pytest
from safetensors.torch import load_file
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.models.opening import ModelRecord, open_config
from pipelines.serving.answering.answerer import Answerer
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import Registry
from tests.tasks.answering_folders import line, save_several
from tests.tasks.conftest import LABELS, TEXTS, Builder

LINES = {
    "topic": line("task", "text_classification", "sequence_classification", tuple(LABELS)),
    "pairs": line("rte", "pair_classification", "sequence_classification", ("no", "yes")),
    "tags": line("names", "tagging", "tagging", ("O", "B-name", "I-name")),
}
PAIRS = [{"text_a": TEXTS[0], "text_b": TEXTS[1]}, {"text_a": TEXTS[2], "text_b": TEXTS[2]}]
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "topic": [{"text": text} for text in TEXTS],
    "pairs": PAIRS,
    "tags": [{"tokens": text.split()} for text in TEXTS],
}

MODEL, SEVERAL = "docs-text-classification", "docs-several-tasks"


@pytest.fixture(scope="module")
def several(classifier_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_several(classifier_folder, tmp_path_factory.mktemp("models") / "several", LINES)


def test_mlflow_serves_every_task_from_one_backbone(root: Path, several: Path) -> None:
    builder = Builder(root, several)
    made = builder.step("share", "finetune", data={"train": builder.table("train", TEXTS)})
    registry = Registry(Recorder(root))
    assert registry.register_final(builder.store, made.provenance, None, {"rte/accuracy": 0.5}) == {SEVERAL: "1"}
    tags = registry.recorder.client.get_model_version_by_alias(SEVERAL, "candidate").tags
    assert tags["cursus.tasks"] == "pairs (pair_classification), tags (tagging), topic (text_classification)"
    assert tags["cursus.score.rte/accuracy"] == "0.5000"

    import mlflow.pyfunc  # warns when it is imported first

    model = mlflow.pyfunc.load_model(f"models:/{SEVERAL}@candidate")
    for task, examples in EXAMPLES.items():
        expected = Answerer(made.folder, task=task).answer(examples)
        answers = model.predict(pandas.DataFrame(examples), params={"task": task})
        assert answers == [{"answer": answer} for answer in expected], task
    for params, reason in (({}, "no task is named"), ({"task": "speech"}, "'speech' is none of its tasks")):
        with pytest.raises(Exception, match=rf"several tasks \(pairs, tags, topic\), and {reason}; pass"):
            model.predict(pandas.DataFrame(PAIRS), params=params)
    with pytest.raises(Exception, match="row 1: the column 'text_a' is missing"):
        model.predict(pandas.DataFrame(EXAMPLES["topic"]), params={"task": "pairs"})

    networks = [one._opened.network for one in model.unwrap_python_model().answerers.values()]
    assert len({id(network.base_model) for network in networks}) == 1
    held = {id(weight): weight for network in networks for weight in network.parameters()}
    held |= {id(weight): weight for weight in networks[0].base_model.parameters()}
    saved = load_file(made.folder / "model.safetensors")
    assert sum(weight.numel() for weight in held.values()) == sum(weight.numel() for weight in saved.values())


def test_a_task_beside_plain_text_is_served_as_that_task_alone(
    root: Path, classifier_folder: Path, tmp_path: Path
) -> None:
    masks = LINES["topic"].model_copy(update={"family": None, "labels": (), "corpus": ("general",)})
    masks = type(masks).model_validate({**masks.model_dump(), "head": "masked_lm"})
    folder = save_several(classifier_folder, tmp_path / "two", {"mlm": masks, "topic": LINES["topic"]})
    builder = Builder(root, folder)
    made = builder.step("share", "finetune", data={"train": builder.table("train", TEXTS)})
    assert Registry(Recorder(root)).register_final(builder.store, made.provenance, None, {}) == {MODEL: "1"}
    import mlflow.pyfunc

    answers = mlflow.pyfunc.load_model(f"models:/{MODEL}@candidate").predict(pandas.DataFrame(EXAMPLES["topic"]))
    assert [answer["label"] for answer in answers] == Answerer(folder).answer(EXAMPLES["topic"])


def test_predict_names_the_tasks_and_answers_the_one_that_is_named(several: Path) -> None:
    refused = CliRunner().invoke(app, ["predict", "--model", str(several), TEXTS[0]])
    assert refused.exit_code == 2
    assert "a model of several tasks (pairs, tags, topic); say which, with --task" in refused.stderr
    topic = CliRunner().invoke(app, ["predict", "--model", str(several), "--task", "topic", TEXTS[0]])
    assert topic.exit_code == 0 and topic.stdout.split()[0] in LABELS, topic.output
    typed = "".join(json.dumps(pair) + "\n" for pair in PAIRS)
    # by the name of its line, and by that of its task
    for name in ("pairs", "rte"):
        pairs = CliRunner().invoke(app, ["predict", "--json", "--model", str(several), "--task", name], input=typed)
        answers = [json.loads(each)["answer"] for each in pairs.stdout.splitlines()]
        assert answers == Answerer(several, task="pairs").answer(PAIRS), pairs.output


def test_export_writes_one_task_as_an_ordinary_folder(several: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS * 3), encoding="utf-8")
    arguments = ["export", str(several), "--to", str(tmp_path / "served"), "--texts", str(texts), "--rounds", "1"]
    arguments += ["--only", "onnxruntime_fp32"]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 2 and "say which, with --task" in refused.stderr
    done = CliRunner().invoke(app, [*arguments, "--task", "topic"])
    assert done.exit_code == 0, done.output
    record = ModelRecord.read(open_config(tmp_path / "served"))
    assert record is not None and not record.lines and record.labels == tuple(LABELS)
    assert Answerer(tmp_path / "served").answer(EXAMPLES["topic"]) == Answerer(several, task="topic").answer(
        EXAMPLES["topic"]
    )
