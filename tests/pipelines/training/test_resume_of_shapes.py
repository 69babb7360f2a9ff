"""What a stage carries besides its weights survives an interruption too: a memory, a generator, what only some layers
learnt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS, RESULT
from pipelines.models.opening import COMPANIONS
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.plan import Plan
from pipelines.training.metrics_log import MetricsLog
from pipelines.training.ranks.run import run
from tests.steps import job_of, library_of, plan_of

RECIPE = """\
name: shapes
paper: arXiv:0000.00000
stages:
  memory:
    kind: pretrain
    corpus: general
    tokenizer: {name: xlnet_unigram, vocab_size: 512}
    layout: contiguous
    backbone:
      name: transformer
      architecture: xlnet
      dims: {d_model: 32, n_layer: 2, n_head: 2, d_inner: 64, mem_len: 32}
    corruption: permutation
    head: permuted_lm
    objective: permuted_lm
    strategy: full
    dropout: 0.1
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {tokens: 30720, batch_tokens: 512, length: 32}
  state:
    kind: pretrain
    corpus: general
    tokenizer: {name: words, vocab_size: 512, min_count: 1}
    layout: contiguous
    backbone: {name: awd_lstm, hidden_size: 16, inner_size: 24, num_hidden_layers: 2}
    head: causal_lm
    objective: [causal_lm, activation_regularization]
    strategy: [discriminative, gradual_unfreezing]
    schedule: slanted_triangular
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {tokens: 30720, batch_tokens: 512, length: 32}
  generator:
    kind: pretrain
    corpus: general
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone:
      name: transformer
      architecture: electra
      positions: 32
      dims: {embedding_size: 16, hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}
    corruption: {name: token_mask, mask: 1.0, random: 0.0}
    head: replaced_tokens
    objective: {name: replaced_token_detection, generator_size: 0.5}
    strategy: full
    dropout: 0.1
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {tokens: 30720, batch_tokens: 512, length: 32}
  packed: {like: generator, layout: packed_documents}
  continued: {kind: adapt_domain, start: generator, corpus: domain, budget: {tokens: 10240}}
"""
RUNTIME = Runtime(log_every=7, checkpoint_every=9)


class PulledPlugError(Exception):
    """The power went."""


@pytest.fixture(scope="module")
def shapes(sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(library_of(tmp_path_factory.mktemp("recipes"), shapes=RECIPE), "shapes", sources)


@pytest.fixture(scope="module")
def whole(shapes: Plan, tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Fingerprint to the folder of every stage, computed without interruption."""
    folders: dict[str, Path] = {}
    for step in shapes.steps:
        job = job_of(step, folders, tables, tmp_path_factory.mktemp(step.name), RUNTIME)
        run(job)
        folders[step.fingerprint] = job.out
    return folders


def interrupted(job: Job, at: int) -> None:
    """Run `job` until optimizer step `at`, where it ends without a word."""
    original = MetricsLog.train

    def train(self: MetricsLog, step: int, *arguments: object, **keywords: object) -> None:
        if step == at:
            raise PulledPlugError
        original(self, step, *arguments, **keywords)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch, pytest.raises(PulledPlugError):
        patch.setattr(MetricsLog, "train", train)
        run(job)


@pytest.mark.parametrize("stage", ["memory", "state", "generator", "packed", "continued"])
def test_it_ends_as_if_never_interrupted(
    stage: str, shapes: Plan, whole: dict[str, Path], tables: dict[str, Path], tmp_path: Path
) -> None:
    step = next(step for step in shapes.steps if step.name == stage)
    job = job_of(step, whole, tables, tmp_path, RUNTIME)
    for at in (14, 15):
        interrupted(job, at)
        assert not (job.out / RESULT).exists()
    assert run(job).resumed_from_step == 9
    kept = whole[step.fingerprint]
    assert (job.out / METRICS).read_text() == (kept / METRICS).read_text()
    for weights in kept.rglob("model.safetensors"):
        if "scratch" not in weights.parts:
            assert (job.out / weights.relative_to(kept)).read_bytes() == weights.read_bytes()


def test_a_checkpoint_whose_metrics_have_changed_is_passed_over(
    shapes: Plan, whole: dict[str, Path], tables: dict[str, Path], tmp_path: Path
) -> None:
    step = next(step for step in shapes.steps if step.name == "state")
    job = job_of(step, whole, tables, tmp_path, RUNTIME)
    interrupted(job, 19)
    lines = (job.out / METRICS).read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["step"] for line in lines] == [7, 14], "the first lies before both checkpoints"
    (job.out / METRICS).write_bytes(lines[0] + lines[1].replace(b"4", b"5", 1))
    result = run(job)
    assert result.resumed_from_step == 9 and result.passed_over == ("the checkpoint of step 18 is damaged",)
    assert (job.out / METRICS).read_text() == (whole[step.fingerprint] / METRICS).read_text()


def test_a_generator_is_taken_over_and_never_part_of_the_model(shapes: Plan, whole: dict[str, Path]) -> None:
    first, second = (
        whole[next(s.fingerprint for s in shapes.steps if s.name == name)] for name in ("generator", "continued")
    )
    before = load_file(first / COMPANIONS / "generator" / "model.safetensors")
    after = load_file(second / COMPANIONS / "generator" / "model.safetensors")
    assert before.keys() == after.keys() and before
    # ten steps further, not somewhere else: a fresh one would have nothing in common with it
    name = next(name for name in before if name.endswith("attention.self.query.weight"))
    assert torch.nn.functional.cosine_similarity(before[name].flatten(), after[name].flatten(), dim=0) > 0.5
    assert not torch.equal(before[name], after[name])
    assert not any("generator" in name for name in load_file(second / "model.safetensors"))


def test_a_network_that_read_packed_rows_is_a_plain_one(shapes: Plan, whole: dict[str, Path]) -> None:
    folder = whole[next(step.fingerprint for step in shapes.steps if step.name == "packed")]
    for config in (folder / "config.json", folder / COMPANIONS / "generator" / "config.json"):
        assert "within_documents" not in config.read_text()
    body = AutoModel.from_pretrained(folder, local_files_only=True)
    assert body(input_ids=torch.full((1, 8), 7)).last_hidden_state.shape == (1, 8, 32)
