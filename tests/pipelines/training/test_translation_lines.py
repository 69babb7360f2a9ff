"""Masked and translation language modelling on one network: lines of several corpora, of which one has pairs, resume
bit for bit and leave an ordinary folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import torch
from safetensors.torch import load_file

from pipelines.corpora.documentation.transcription import transcribed, translations
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.models.opening import open_tokenizer
from pipelines.recipe.job import Runtime
from pipelines.recipe.plan import Plan, plan
from pipelines.training.loop.module import StageModule
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tests.small_corpus import documents
from tests.steps import job_of, library_of

RECIPE = """\
name: pairs
paper: arXiv:1901.07291
stages:
  general:
    kind: pretrain
    tokenizer: {name: wordpiece, vocab_size: 600}
    backbone:
      name: transformer
      positions: 48
      dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64, type_vocab_size: 1}
      embeddings: {name: languages, size: 2}
    head: masked_lm
    objective: masked_lm
    lines:
      english:
        corpus: general
        annotations: {name: languages, order: [english, other], of: english}
        corruption: token_mask
      translation:
        corpus: parallel
        texts: [text, translation]
        annotations: {name: languages, order: [english, other], of: {text: english, translation: other}}
        layout: packed_documents
        corruption: [restart_positions, token_mask]
    mixing: alternating
    strategy: full
    dropout: 0.1
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {tokens: 6144, batch_tokens: 768, length: 48}
"""
RUNTIME = Runtime(log_every=2, checkpoint_every=5)


class InterruptedTrainingError(Exception):
    """Ends a training."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tables")
    texts = documents("json", "argparse")
    pairs = [pair for text in texts for pair in translations(text)]
    rows = {
        "general": [{"text": text} for text in texts],
        "parallel": [{"text": text, "translation": translation} for text, translation in pairs],
    }
    for name, part in rows.items():
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(part), folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in rows}


@pytest.fixture(scope="module")
def planned(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Plan:
    library = library_of(tmp_path_factory.mktemp("recipes"), pairs=RECIPE)
    paths = enumerate(tables.items())
    sources = {name: DataSource(digest=f"{number:032x}", path=str(path)) for number, (name, path) in paths}
    return plan(library.load("pairs"), library, sources)


def test_a_resumed_stage_of_pairs_ends_in_the_weights_of_an_uninterrupted_one(
    planned: Plan, tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (step,) = planned.steps
    whole = job_of(step, {}, tables, tmp_path / "whole", RUNTIME)
    run(whole)
    job = job_of(step, {}, tables, tmp_path / "resumed", RUNTIME)
    original = StageModule.training_step

    def failing(self: StageModule, batch: object, index: int) -> object:
        if self.global_step == 6:
            raise InterruptedTrainingError
        return original(self, batch, index)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, pytest.raises(InterruptedTrainingError):
        patch.setattr(StageModule, "training_step", failing)
        run(job)
    assert run(job).resumed_from_step == 5
    assert (job.out / "model.safetensors").read_bytes() == (whole.out / "model.safetensors").read_bytes()
    assert (job.out / METRICS).read_bytes() == (whole.out / METRICS).read_bytes()
    names = {name for line in read_metrics(whole.out / METRICS) for name in line}
    assert {"train/english/masked_lm", "train/translation/masked_lm"} <= names
    # one head for both lines: an ordinary folder, whose table of languages has learned in both rows
    weights = load_file(whole.out / "model.safetensors")
    assert not any(name.startswith("heads.") for name in weights)
    (table,) = (value for name, value in weights.items() if "channels.languages" in name)
    assert table.shape == (2, 32) and not torch.equal(table[0], table[1])
    tokenizer = open_tokenizer(whole.out)
    assert tokenizer.unk_token not in tokenizer.tokenize(transcribed("return the value")), "it has read both columns"
