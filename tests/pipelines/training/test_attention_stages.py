"""Stages with attention patterns: several in one backbone, and one whose knowledge is saved with its model."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from pipelines.errors import DataError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.models.opening import open_model
from pipelines.models.text_network import output_kind
from pipelines.recipe.job import Job, Runtime
from pipelines.serving.answering.answerer import Answerer
from pipelines.training.metrics_log import MetricsLog, read_metrics
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Field, Signal
from tests.steps import job_of, library_of, plan_of

RECIPE = """\
name: patterns
paper: arXiv:1905.03197
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {{name: wordpiece, vocab_size: 512}}
    backbone:
      name: transformer
      positions: 64
      dims: {{hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64, type_vocab_size: 6}}
    head: masked_lm
    objective: masked_lm
    lines:
      both: {{corruption: [{{name: token_types, types: [0, 1]}}, token_mask]}}
      forward: {{attention: left_to_right, corruption: [{{name: token_types, types: [2]}}, token_mask]}}
      across: {{attention: sequence_to_sequence, corruption: [{{name: token_types, types: [4, 5]}}, token_mask]}}
    mixing: alternating
    strategy: full
    dropout: 0.1
    optimizer: {{lr: 1.0e-3, precision: 32-true}}
    budget: {{tokens: 6144, batch_tokens: 512, length: 32}}
  plain:
    kind: finetune
    start: general
    corpus: task
    head: {{name: sequence_classification, pooling: mean}}
    objective: cross_entropy
    strategy: full
    dropout: 0.1
    optimizer: {{lr: 3.0e-3, precision: 32-true}}
    budget: {{epochs: 4, batch_texts: 4, length: 32}}
  knowledge: {{like: plain, attention: visible_matrix, knowledge: {{name: triples, file: {graph}}}}}
"""
GRAPH = "the\tbelongs to\tarticles\nfile\tis a\tthing on disk\nreturn\tis a\tword\nobject\tis a\tvalue\n"
TEXTS = ["Return the file that an object was read from.", "The format of the message.", "Write no such word."]
RUNTIME = Runtime(log_every=1, checkpoint_every=3)


class PulledPlugError(Exception):
    """The power went."""


@pytest.fixture(scope="module")
def made(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Job]:
    """Stage → the job that computed it. The graph is gone afterwards."""
    folder = tmp_path_factory.mktemp("patterns")
    graph = folder / "graph.tsv"
    graph.write_text(GRAPH, encoding="utf-8")
    plan = plan_of(library_of(folder, patterns=RECIPE.format(graph=graph)), "patterns", sources)
    jobs, folders = {}, dict[str, Path]()
    for step in plan.steps:
        job = job_of(step, folders, tables, folder / step.name, RUNTIME)
        run(job)
        jobs[step.name], folders[step.fingerprint] = job, job.out
    graph.unlink()
    return jobs


def test_each_line_trains_under_its_own_mask(made: dict[str, Job]) -> None:
    lines = read_metrics(made["general"].out / METRICS)
    for line in ("both", "forward", "across"):
        terms = [float(one[f"train/{line}/masked_lm"]) for one in lines if f"train/{line}/masked_lm" in one]
        assert terms and all(math.isfinite(term) for term in terms)


@pytest.mark.parametrize("stage", ["general", "knowledge"])
def test_killed_and_resumed_it_is_the_same_model(
    stage: str, made: dict[str, Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = made[stage].model_copy(update={"out": tmp_path / "interrupted"})
    if stage == "knowledge":  # what the graph was is in the folder of the model
        saved = open_model(made[stage].out, "cpu").record.knowledge
        job = job.model_copy(update={"stage": job.stage.model_copy(update={"knowledge": saved})})
    log, steps = MetricsLog.train, []

    def cut(self: MetricsLog, *values: object, **options: object) -> None:
        log(self, *values, **options)  # type: ignore[arg-type]
        steps.append(values)
        if len(steps) == 5:
            raise PulledPlugError

    with monkeypatch.context() as cutting:
        cutting.setattr(MetricsLog, "train", cut)
        with pytest.raises(PulledPlugError):
            run(job)
    result = run(job)
    assert result.resumed_from_step == 3
    assert (job.out / "model.safetensors").read_bytes() == (made[stage].out / "model.safetensors").read_bytes()


def test_a_saved_model_injects_what_it_was_trained_with(made: dict[str, Job]) -> None:
    folder = made["knowledge"].out
    answerer = Answerer(folder)
    assert len(answerer.answer([{"text": text} for text in TEXTS])) == len(TEXTS)
    opened = open_model(folder, "cpu")
    assert opened.record.attention is not None and opened.record.knowledge is not None
    assert all(path.parent == folder and path.is_file() for path in opened.record.knowledge.reads_files)


def test_what_is_injected_changes_the_answer_of_its_text_alone(made: dict[str, Job]) -> None:
    import torch

    from pipelines.models.features import encode_examples
    from pipelines.models.reading import complete_batches

    opened = open_model(made["knowledge"].out, "cpu")
    assert opened.record.task is not None
    opened.network.double()
    rows = [{"text": text} for text in TEXTS]
    blind = opened.record.model_copy(update={"knowledge": None, "attention": None})
    logits = []
    for record in (opened.record, blind):
        encoded = encode_examples(record.head, rows, opened.record.task, opened.tokenizer, 32, (), answers=False)
        complete_batches(encoded, record, opened.tokenizer, 32)
        batch = {name: torch.from_numpy(value) for name, value in encoded.batch(np.arange(3)).items()}
        logits.append(opened.record.head.signals(opened.network, batch, frozenset({Signal.LOGITS}))[Signal.LOGITS])
        if record is opened.record:
            assert (batch[Field.BRANCHES] > 0).any(1).tolist() == [True, True, False]
            assert batch[Field.INPUT_IDS].shape[1] > batch[Field.ATTENTION_MASK].sum(1).max()
    assert (logits[0] - logits[1]).abs().amax(1).gt(1e-8).tolist() == [True, True, False]
    torch.testing.assert_close(logits[0][2], logits[1][2], rtol=1e-12, atol=1e-13)


def test_a_runtime_that_reads_tokens_alone_refuses_it(made: dict[str, Job]) -> None:
    with pytest.raises(DataError, match="trained with attention: visible_matrix.*cursus predict"):
        output_kind(made["knowledge"].out)
    output_kind(made["plain"].out)
