"""The depth of every parameter, by hand for each kind of body."""

from __future__ import annotations

import pytest

from pipelines.training.assembly.parameter_groups import groups_by_depth
from tests.pipelines.parts.strategies.harness import body, classifier

BERT = {
    0: {"embeddings."},
    1: {"encoder.layer.0."},
    2: {"encoder.layer.1.", "pooler."},
}
EXPECTED: dict[str, dict[int, set[str]]] = {
    "bert": BERT,
    "roberta": BERT,
    "electra": {0: {"embeddings.", "embeddings_project."}, 1: {"encoder.layer.0."}, 2: {"encoder.layer.1."}},
    "gpt2": {0: {"wte.", "wpe."}, 1: {"h.0."}, 2: {"h.1.", "ln_f."}},
    "xlnet": {0: {"mask_emb", "word_embedding."}, 1: {"layer.0."}, 2: {"layer.1."}},
    "t5": {
        0: {"shared."},
        1: {"encoder.block.0."},
        2: {"encoder.block.1.", "encoder.final_layer_norm."},
        3: {"decoder.block.0."},
        4: {"decoder.block.1.", "decoder.final_layer_norm."},
    },
}


@pytest.mark.parametrize("architecture", EXPECTED)
def test_a_bodys_parameters_stand_where_its_layers_do(architecture: str) -> None:
    network = body(architecture)
    expected = EXPECTED[architecture]
    groups = groups_by_depth(network, 1e-3, 0.01)
    found = {name: group.depth for group in groups for name, _ in group.parameters}
    for name, depth in found.items():
        assert name.startswith(tuple(expected[depth])), (name, depth)
    assert set(found) == {name for name, _ in network.named_parameters()}
    assert {group.layers for group in groups} == {max(expected)}


def test_what_is_outside_the_body_is_deeper_than_its_top_layer_and_vectors_do_not_decay() -> None:
    network = classifier()
    groups = groups_by_depth(network, 1e-3, 0.01)
    assert {n for g in groups if g.is_head for n, _ in g.parameters} == {"classifier.weight", "classifier.bias"}
    for group in groups:
        assert {parameter.ndim > 1 for _, parameter in group.parameters} == {group.weight_decay > 0}
    assert [group.depth for group in groups] == [0, 0, 1, 1, 2, 2, 3, 3]
