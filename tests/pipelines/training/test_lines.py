"""Stages with several lines: one body, a head for each task, and training that resumes bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

from pipelines.errors import DataError, RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.models.extracting import extract_task
from pipelines.models.opening import open_lines, open_model
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.plan import Plan
from pipelines.serving.answering.answerer import Answerer
from pipelines.training.metrics_log import MetricsLog, read_metrics
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Field, Signal
from tests.pipelines.training.lines_recipe import RECIPE
from tests.steps import job_of, library_of, plan_of

RUNTIME = Runtime(log_every=7, checkpoint_every=5)


class PulledPlugError(Exception):
    """The power went."""


@pytest.fixture(scope="module")
def lines(sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(library_of(tmp_path_factory.mktemp("recipes"), lines=RECIPE), "lines", sources)


@pytest.fixture(scope="module")
def trained(lines: Plan, tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Job]:
    """Stage → the job that computed it, without interruption."""
    folders: dict[str, Path] = {}
    jobs: dict[str, Job] = {}
    for step in lines.steps:
        job = job_of(step, folders, tables, tmp_path_factory.mktemp(step.name), RUNTIME)
        run(job)
        folders[step.fingerprint], jobs[step.name] = job.out, job
    return jobs


def test_every_head_is_saved_once_on_one_body(trained: dict[str, Job]) -> None:
    folder = trained["share"].out
    weights = load_file(folder / "model.safetensors")
    heads = {name.split(".")[1] for name in weights if name.startswith("heads.")}
    assert heads == {"topic_head", "again_head", "mlm_head"}
    assert all(name.startswith(("heads.", "bert.")) for name in weights)
    body, loading = AutoModel.from_pretrained(folder, output_loading_info=True, add_pooling_layer=False)
    assert not loading["missing_keys"], "plain transformers opens the body"
    for name, value in body.state_dict().items():
        assert torch.equal(value, weights[f"bert.{name}"])


def test_heads_that_are_opened_share_the_body(trained: dict[str, Job]) -> None:
    opened = open_lines(trained["share"].out, "cpu")
    assert set(opened.lines) == {"topic", "again", "mlm"}
    bodies = {id(line.network.base_model) for line in opened.lines.values()}
    assert bodies == {id(opened.network.base_model)}
    ids = torch.tensor([[5, 6, 7, 8]])
    batch = {
        Field.INPUT_IDS: ids,
        Field.ATTENTION_MASK: torch.ones_like(ids),
        Field.MASKED_POSITIONS: torch.tensor([2]),
    }
    topic, mlm = opened.lines["topic"], opened.lines["mlm"]
    logits = topic.record.head.signals(topic.network, batch, frozenset({Signal.LOGITS}))[Signal.LOGITS]
    assert topic.record.task is not None and logits.shape == (1, len(topic.record.task.labels))
    words = mlm.record.head.signals(mlm.network, batch, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]
    assert words.shape == (1, mlm.network.config.vocab_size)
    embeddings = opened.network.base_model.get_input_embeddings().weight
    assert mlm.network.get_output_embeddings().weight is embeddings, "tied to the shared body"


def test_which_task_is_said_where_there_are_several(trained: dict[str, Job]) -> None:
    folder = trained["share"].out
    assert open_model(folder, "cpu", "again").record.head != open_model(folder, "cpu", "topic").record.head
    assert open_model(folder, "cpu", "mlm").record.head.name == "masked_lm"
    for task, says in ((None, r"several tasks \(again, topic\); say which"), ("speech", "'speech' is none")):
        with pytest.raises(RecipeError, match=says):
            open_model(folder, "cpu", task)


def test_all_lines_learn_and_are_measured(trained: dict[str, Job]) -> None:
    job = trained["share"]
    metrics = read_metrics(job.out / METRICS)
    names = {name for line in metrics for name in line}
    assert {"train/topic/cross_entropy", "train/again/cross_entropy", "train/mlm/masked_lm", "train/loss"} <= names
    assert {"validation/topic/macro_f1", "validation/again/macro_f1", "validation/mean"} <= names, sorted(names)
    start, end = (load_file(trained[name].out / "model.safetensors") for name in ("general", "share"))
    assert not torch.equal(
        start["bert.encoder.layer.0.output.dense.weight"], end["bert.encoder.layer.0.output.dense.weight"]
    )


def test_a_head_continues_from_the_one_of_its_kind(trained: dict[str, Job]) -> None:
    """`share` keeps the masked-LM head of `general`; lines that share a head leave an ordinary folder."""
    masks = load_file(trained["masks"].out / "model.safetensors")
    assert not any(name.startswith("heads.") for name in masks)
    assert not open_lines(trained["masks"].out, "cpu").lines


@pytest.mark.parametrize("stage", ["share", "masks"])
def test_an_interrupted_stage_ends_with_the_same_weights(
    stage: str,
    lines: Plan,
    trained: dict[str, Job],
    tables: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = next(step for step in lines.steps if step.name == stage)
    folders = {other.fingerprint: trained[other.name].out for other in lines.steps}
    job = job_of(step, folders, tables, tmp_path / "out", RUNTIME)
    original = MetricsLog.train

    def train(self: MetricsLog, at: int, *rest: object, **named: object) -> None:
        if at == 7:
            raise PulledPlugError
        original(self, at, *rest, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patched, pytest.raises(PulledPlugError):
        patched.setattr(MetricsLog, "train", train)
        run(job)
    assert run(job).resumed_from_step == 5
    whole, resumed = (load_file(folder / "model.safetensors") for folder in (trained[stage].out, job.out))
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())
    assert (job.out / METRICS).read_bytes() == (trained[stage].out / METRICS).read_bytes()


def test_a_task_is_extracted_as_an_ordinary_folder(trained: dict[str, Job], tmp_path: Path) -> None:
    folder = trained["share"].out
    alone = open_model(extract_task(folder, "again", tmp_path / "again"), "cpu")
    together = open_model(folder, "cpu", "again")
    ids = torch.tensor([[5, 6, 7, 8], [9, 8, 0, 0]])
    batch = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: (ids > 0).long()}
    one, other = (
        opened.record.head.signals(opened.network, batch, frozenset({Signal.LOGITS}))[Signal.LOGITS]
        for opened in (alone, together)
    )
    assert torch.equal(one, other) and not alone.record.lines
    assert extract_task(tmp_path / "again", None, tmp_path / "never") == tmp_path / "again"


def test_answerers_of_several_tasks_share_one_backbone(trained: dict[str, Job]) -> None:
    folder = trained["share"].out
    opened = open_lines(folder, "cpu")
    topic, again = (Answerer(folder, task=task, opened=opened) for task in ("topic", "again"))
    assert topic._opened.network.base_model is again._opened.network.base_model
    texts = [{"text": "Return the mean of an array."}, {"text": "Send an email."}]
    labels = opened.lines["topic"].record.labels
    assert set(topic.answer(texts)) <= set(labels) and set(again.answer(texts)) <= set(labels)
    with pytest.raises(DataError, match="answers no task"):
        Answerer(folder, task="mlm", opened=opened)
