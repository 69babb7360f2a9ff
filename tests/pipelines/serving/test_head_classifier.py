"""A classifier that reads channels has class probabilities too: judged and asked like any other, and never exported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import torch

from pipelines.errors import DataError
from pipelines.lineage.provenance import DataSource
from pipelines.models.opening import open_model
from pipelines.models.text_network import output_kind
from pipelines.recipe.job import Runtime
from pipelines.serving.answering.answerer import Answerer
from pipelines.serving.answering.inference import open_predictor
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Field, Signal
from tests.steps import job_of, library_of, plan_of

RECIPE = """\
name: scripts
stages:
  classify:
    kind: finetune
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone:
      name: transformer
      positions: 32
      dims: {hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 64}
      embeddings: {name: languages, size: 2}
    corpus: task
    annotations: {name: languages_by_script, order: [en, el], scripts: {latin: en, greek: el}}
    head: sequence_classification
    objective: cross_entropy
    strategy: full
    optimizer: {lr: 1.0e-2, precision: 32-true}
    budget: {epochs: 1, batch_texts: 8, length: 32}
"""


@pytest.fixture(scope="module")
def folder(sources: dict[str, DataSource], tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    (step,) = plan_of(library_of(tmp_path_factory.mktemp("recipes"), scripts=RECIPE), "scripts", sources).steps
    job = job_of(step, {}, tables, tmp_path_factory.mktemp("classify"), Runtime())
    run(job)
    return job.out


def test_probabilities_are_those_of_the_network_with_its_channels(folder: Path, tables: dict[str, Path]) -> None:
    rows = pyarrow.parquet.read_table(tables["test"]).to_pylist()[:12]
    texts = [row["text"] for row in rows]
    predictor = open_predictor(folder)
    given = predictor.predict([*texts, "\u03b1 " + "\u03b2" * 9], batch_size=5)
    opened = open_model(folder, "cpu")
    expected = []
    with torch.inference_mode():
        for number, text in enumerate([*texts, "\u03b1 " + "\u03b2" * 9]):
            tokens = opened.tokenizer(text, truncation=True, max_length=32, return_tensors="pt")
            batch = {
                Field.INPUT_IDS: tokens.input_ids,
                Field.ATTENTION_MASK: tokens.attention_mask,
                Field.of_channel("languages"): torch.full_like(tokens.input_ids, int(number == len(texts))),
            }
            signals = opened.record.head.signals(opened.network, batch, frozenset({Signal.LOGITS}))
            expected.append(signals[Signal.LOGITS].softmax(-1)[0].numpy())
    np.testing.assert_allclose(given, np.stack(expected), atol=2e-6)
    answers = Answerer(folder).answer(rows)
    assert [predictor.labels[index] for index in given[:-1].argmax(1)] == answers
    assert predictor.predict([]).shape == (0, len(predictor.labels))
    with pytest.raises(DataError, match=r"reads channels alongside the tokens \(languages\), which runtimes do not"):
        output_kind(folder)


def test_a_head_that_calls_its_network_in_a_way_of_its_own_has_class_probabilities(
    sources: dict[str, DataSource], tables: dict[str, Path], tmp_path: Path
) -> None:
    apart = RECIPE.replace("name: scripts", "name: apart").replace("head: sequence", "head: siamese")
    apart = "".join(line for line in apart.splitlines(keepends=True) if "annotations" not in line)
    apart = apart.replace("      embeddings: {name: languages, size: 2}\n", "")
    (tmp_path / "recipes").mkdir()
    (step,) = plan_of(library_of(tmp_path / "recipes", apart=apart), "apart", sources).steps
    job = job_of(step, {}, tables, tmp_path, Runtime())
    run(job)
    rows = pyarrow.parquet.read_table(tables["test"]).to_pylist()[:12]
    predictor = open_predictor(job.out)
    given = predictor.predict([row["text"] for row in rows], batch_size=5)
    np.testing.assert_allclose(given.sum(1), 1, atol=1e-5)
    assert [predictor.labels[index] for index in given.argmax(1)] == Answerer(job.out).answer(rows)
    with pytest.raises(DataError, match=r"its head \(siamese_classification\) does not return a single array per text"):
        output_kind(job.out)
