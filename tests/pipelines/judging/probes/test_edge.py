"""Edge probing: which spans are asked, weights that sum to one, and a mixture that finds the layer that knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipelines.errors import RecipeError
from pipelines.judging.probes import LAYERS
from pipelines.judging.probes.edge import EdgeProbe, Spans, predictions, span_network, spans_of
from pipelines.judging.probes.model import WordStates
from pipelines.task_families import TaskFamily
from tests.pipelines.judging.probes.small_models import opened, save_model, write_table


def vectors(begins: list[int], covered: list[bool]) -> WordStates:
    words = np.zeros((begins[-1], 3), np.float32)
    return WordStates((words,), np.asarray(begins), np.asarray(covered))


def test_spans_are_entities_or_a_word_and_its_head_and_only_where_they_are_covered() -> None:
    tagged = [{"tokens": list("abc"), "tags": ["B-x", "I-x", "O"]}, {"tokens": list("de"), "tags": ["B-y", "B-x"]}]
    found = spans_of(TaskFamily.model_validate("tagging"), tagged, vectors([0, 3, 5], [True] * 4 + [False]))
    assert found.words.tolist() == [[[0, 1]], [[3, -1]]] and found.labels == ["x", "y"]
    assert found.sentences.tolist() == [0, 1]
    tree = [{"sentence": "a b c", "words": list("abc"), "heads": [2, 0, 2], "relations": ["det", "root", "obj:x"]}]
    found = spans_of(TaskFamily.model_validate("dependency_parsing"), tree, vectors([0, 3], [True] * 3))
    assert found.words.tolist() == [[[0], [1]], [[2], [1]]] and found.labels == ["det", "obj"]


def test_the_mixture_is_a_share_of_each_layer_and_finds_the_one_that_knows() -> None:
    random = np.random.default_rng(0)
    words = np.arange(400)
    labels = ["ab"[int(one)] for one in random.integers(0, 2, 400)]
    noise = [random.normal(size=(400, 6)).astype(np.float32) for _ in range(3)]
    noise[1][:, 0] = [4.0 if label == "a" else -4.0 for label in labels]
    spans = Spans(words, words[:, None, None], labels)
    network = EdgeProbe(epochs=30).fit(noise, spans, ["a", "b"], seed=0)
    assert sum(network.mix.shares) == pytest.approx(1.0) and min(network.mix.shares) > 0
    assert int(np.argmax(network.mix.shares)) == 1
    said = [["a", "b"][one] for one in predictions(network, noise, spans.words)]
    assert np.mean([one == label for one, label in zip(said, labels, strict=True)]) > 0.98


def test_a_span_is_pooled_over_its_own_words_alone() -> None:
    import torch

    torch.manual_seed(0)
    network = span_network(1, 4, 5, 1, 3).eval()
    states = [torch.randn(6, 4)]
    with torch.no_grad():
        narrow = network(states, torch.tensor([[[2, 3]]]))
        padded = network(states, torch.tensor([[[2, 3, -1, -1]]]))
        other = network(states, torch.tensor([[[2, 4]]]))
    assert torch.allclose(narrow, padded, atol=1e-6) and not torch.allclose(narrow, other, atol=1e-3)


def test_layers_are_scored_by_mixtures_of_those_below(tmp_path: Path) -> None:
    rows = [
        {"tokens": ["the", name, "is", "a", kind], "tags": ["O", "B-n", "O", "O", "B-k"]}
        for name, kind in zip(["parser", "value", "file"] * 8, ["list", "string", "key", "name"] * 6, strict=True)
    ]
    tables = {name: write_table(tmp_path / f"{name}.parquet", rows) for name in ("train", "test")}
    model = opened(save_model(tmp_path / "model"), tables, "tagging")
    probe = EdgeProbe()
    seen = probe.observe(model)
    assert seen.statistics[LAYERS].shape == (3, 24, 2) and (seen.statistics[LAYERS][..., 1] == 2).all()
    assert all(probe.score("accuracy", layer) > 0.9 for layer in seen.statistics[LAYERS])
    assert len(seen.notes["mix"]) == 3 and sum(seen.notes["mix"]) == pytest.approx(1.0)
    assert seen.notes["centre_of_gravity"] == pytest.approx(seen.notes["mix"][1] + 2 * seen.notes["mix"][2])
    again = probe.observe(model)
    assert (again.statistics[LAYERS] == seen.statistics[LAYERS]).all() and again.notes == seen.notes


def test_layers_of_different_width_cannot_be_mixed(tmp_path: Path) -> None:
    body = {"name": "awd_lstm", "hidden_size": 16, "inner_size": 24, "num_hidden_layers": 2}
    rows = [{"tokens": ["a", "parser"], "tags": ["O", "B-n"]}]
    tables = {name: write_table(tmp_path / f"{name}.parquet", rows) for name in ("train", "test")}
    model = opened(save_model(tmp_path / "model", head="causal_lm", body=body), tables, "tagging")
    with pytest.raises(RecipeError, match="widths 16, 24 and cannot be mixed"):
        EdgeProbe().observe(model)
