"""Attention to words, on heads that are made to attend where a test says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from pipelines.judging.probes import LAYERS
from pipelines.judging.probes import ProbedStage as Looked
from pipelines.judging.probes.attention_relations import AttentionRelationsProbe, most_attended
from pipelines.judging.probes.model import ProbedModel, pooling
from tests.pipelines.judging.probes.small_models import opened, save_model, write_table

ROW = {
    "sentence": "the parser reads a file",
    "words": ["the", "parser", "reads", "a", "file"],
    "heads": [2, 3, 0, 5, 3],
    "relations": ["det", "nsubj", "root", "det", "obj"],
}


def made_to_attend(folder: Path, tables: dict[str, Path]) -> ProbedModel:
    """A model whose head 1 of layer 2 attends from every token to the next one, and whose other heads to [CLS]."""
    model = opened(folder, tables, "dependency_parsing")

    def attending(number: int) -> Callable[..., object]:
        def hook(module: object, args: object, kwargs: object, said: tuple[torch.Tensor, torch.Tensor]) -> object:
            weights = torch.zeros_like(said[1])
            weights[..., 0] = 1.0
            if number == 2:
                weights[:, 1] = torch.diag(torch.ones(weights.shape[-1] - 1), 1)
            return said[0], weights

        return hook

    for number, layer in enumerate(model.opened.network.base_model.encoder.layer, 1):
        layer.attention.self.register_forward_hook(attending(number), with_kwargs=True)
    return model


def test_attention_to_a_word_is_the_sum_over_its_pieces_and_from_one_the_mean() -> None:
    mean = pooling(np.asarray([-1, 0, 1, 1, -1]), 3)
    assert mean.tolist() == [[0, 1, 0, 0, 0], [0, 0, 0.5, 0.5, 0], [0, 0, 0, 0, 0]]


def test_the_word_attended_to_is_another_one() -> None:
    attention = np.asarray([[[[0.9, 0.1, 0.0], [0.2, 0.3, 0.5], [0.0, 0.0, 0.0]]]], np.float32)
    assert most_attended(attention).tolist() == [[[1, 2, -1]]]


def test_rows_of_word_attention_add_up_to_what_does_not_go_to_the_frame(tmp_path: Path) -> None:
    tables = {name: write_table(tmp_path / f"{name}.parquet", [ROW]) for name in ("train", "test")}
    model = opened(save_model(tmp_path / "model"), tables, "dependency_parsing")
    words = [["unfathomable", "parser", "x"]]
    pieces = model.encode(words)[0].words
    assert (pieces == 0).sum() > 1, "the first word has several pieces"
    ((_, attention),) = model.attention(words)
    with torch.no_grad():
        said = model.opened.network.base_model(
            input_ids=torch.tensor(model.encode(words)[0].ids)[None], output_attentions=True
        )
    whole = said.attentions[0][0, 2].numpy()
    rows, columns = pieces == 0, pieces == 1
    assert attention.shape == (2, 3, 3, 3)
    assert attention[0, 2, 0, 1] == pytest.approx(whole[rows][:, columns].sum(1).mean(), abs=1e-5)


def test_a_head_that_looks_one_word_on_finds_determiners_and_is_no_better_than_that_offset(tmp_path: Path) -> None:
    tables = {name: write_table(tmp_path / f"{name}.parquet", [ROW] * 30) for name in ("train", "test")}
    model = made_to_attend(save_model(tmp_path / "model"), tables)
    probe = AttentionRelationsProbe()
    seen = probe.observe(model)
    assert seen.first_layer == 1 and seen.statistics[LAYERS].shape == (2, 30, 6)
    record = probe.record([Looked("general", (0,), (seen,))], 0)
    found = {one["relation"]: one for one in record["stages"][0]["relations"]}
    assert set(found) == {"det", "nsubj", "obj"}, "the root has no head"
    for relation in ("det", "nsubj"):
        assert found[relation]["heads"] == [{"layer": 2, "head": 1}] and found[relation]["offset"] == 1
        assert found[relation]["accuracy"]["mean"] == 1.0 and found[relation]["offset_accuracy"]["mean"] == 1.0
        assert found[relation]["above_offset"]["verdict"] == "cannot tell"
    assert found["obj"]["offset"] == -2 and found["det"]["words"] == 60
