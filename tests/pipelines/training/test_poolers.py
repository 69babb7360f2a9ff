"""The backbone's pooler: trained by pairs of segments, read by a head that pools with it, left out by others."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from pipelines.lineage.provenance import DataSource
from pipelines.models.opening import open_model, open_tokenizer
from pipelines.task_families import Task
from pipelines.task_families.text_classification import TextClassification
from pipelines.training.assembly.assemble import assemble
from pipelines.training.ranks.run import run
from tests.pipelines.training.conftest import RUNTIME
from tests.steps import job_of, library_of, plan_of

RECIPE = """\
name: paired
paper: arXiv:1810.04805
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone:
      name: transformer
      positions: 32
      dims: {hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 64}
    corruption: [next_sentence, token_mask]
    head: masked_lm_and_pairs
    objective: [masked_lm, next_sentence]
    strategy: full
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {tokens: 2048, batch_tokens: 1024, length: 32}
  classify:
    kind: finetune
    start: general
    corpus: task
    head: {name: sequence_classification, pooling: pooler}
    objective: cross_entropy
    strategy: full
    budget: {epochs: 1, batch_texts: 4, length: 32}
  mean: {like: classify, head: sequence_classification}
  masked: {like: general, kind: adapt_domain, start: general, corpus: domain, corruption: token_mask, head: masked_lm,
    objective: masked_lm}
  pooled: {like: classify, start: masked}
"""
LABELS = Task(TextClassification(), ("email", "unittest", "xml"))
POOLER = "bert.pooler.dense.weight"


def test_a_pooler_is_taken_left_out_or_new(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path
) -> None:
    plan = plan_of(library_of(tmp_path, paired=RECIPE), "paired", sources)
    folders: dict[str, Path] = {}
    for step in plan.steps:
        if step.name in ("general", "masked"):
            folders[step.fingerprint] = tmp_path / step.name
            run(job_of(step, folders, tables, tmp_path / step.name, RUNTIME))
    general, masked = tmp_path / "general", tmp_path / "masked"
    saved = load_file(general / "model.safetensors")
    assert POOLER in saved and POOLER not in load_file(masked / "model.safetensors")

    stages = plan.recipe.stages
    taken = assemble(stages["classify"], general, open_tokenizer(general), {"": LABELS}, "cpu")
    assert torch.equal(taken.state_dict()[POOLER], saved[POOLER])
    left = assemble(stages["mean"], general, open_tokenizer(general), {"": LABELS}, "cpu")
    assert POOLER not in left.state_dict()
    name = "bert.encoder.layer.0.output.dense.weight"
    assert torch.equal(left.state_dict()[name], saved[name])
    new = assemble(stages["pooled"], masked, open_tokenizer(masked), {"": LABELS}, "cpu")
    assert not torch.equal(new.state_dict()[POOLER], saved[POOLER])

    opened = open_model(general, "cpu").network
    assert opened.state_dict().keys() >= {POOLER, "cls.seq_relationship.weight"}


def test_a_line_of_pairs_brings_its_pooler(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path
) -> None:
    """Two lines on one backbone, the first of which has no pooler."""
    lines = """\
    head: masked_lm_and_pairs
    lines:
      masked: {corruption: token_mask, head: masked_lm, objective: masked_lm}
      paired: {corruption: [next_sentence, token_mask], objective: [masked_lm, next_sentence]}
    mixing: alternating
    strategy: full
"""
    head, _, tail = RECIPE.partition("    corruption: [next_sentence")
    rest = tail.partition("    strategy: full\n")[2].partition("  classify:")[0]
    plan = plan_of(library_of(tmp_path, paired=f"{head}{lines}{rest}"), "paired", sources)
    run(job_of(plan.steps[0], {}, tables, tmp_path / "general", RUNTIME))
    assert POOLER in load_file(tmp_path / "general" / "model.safetensors")
