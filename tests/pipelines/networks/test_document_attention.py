"""Attention within documents, over packed rows: the same answers and gradients as of the documents one by one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, PreTrainedModel

from pipelines.errors import RecipeError
from pipelines.networks import document_attention
from pipelines.networks.document_attention import attend_within_documents, documents_of

ENCODER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
BODIES: dict[str, dict[str, Any]] = {
    "bert": ENCODER,
    "roberta": ENCODER,
    "electra": {**ENCODER, "embedding_size": 16},
    "albert": {**ENCODER, "embedding_size": 16},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48},
    # a window of four tokens on either side in its second layer
    "modernbert": {**ENCODER, "local_attention": 8},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 512, "scale_attn_by_inverse_layer_idx": True},
}
ROUNDS = ("modernbert",)
"""Those that turn queries and keys in float32, whatever they are."""
ROWS: dict[str, list[list[int]]] = {
    "even": [[24, 24], [48], [40, 8]],  # read as whole rows
    "short": [[3, 40, 1, 2, 50], [5, 7, 11, 13, 17, 19, 24], [6] * 16, [1, 1, 1, 1, 12, 30, 50]],  # gathered by length
}
"""Lengths of the documents of each row."""


def body(architecture: str, dtype: torch.dtype) -> PreTrainedModel:
    torch.manual_seed(3)
    config = AutoConfig.for_model(architecture, vocab_size=99, pad_token_id=0, **BODIES[architecture])
    config._attn_implementation = "eager"
    network: PreTrainedModel = AutoModel.from_config(config).to(dtype)
    for parameter in network.parameters():  # initial weights are so small that attention hardly matters
        parameter.data += 0.3 * torch.randn_like(parameter)
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return network.train()


def first_position(network: PreTrainedModel) -> int:
    """Where the first token stands in the table of positions."""
    return 1 if network.config.model_type == "roberta" else 0


def packed(rows: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Random ids, positions that begin again at each document, and where documents begin."""
    positions = torch.stack([torch.cat([torch.arange(length) for length in row]) for row in rows])
    ids = torch.randint(5, 99, positions.shape, generator=torch.Generator().manual_seed(0))
    return ids, positions, (positions == 0).long()


def kinds_of(network: PreTrainedModel, ids: Tensor) -> dict[str, Tensor]:
    """Token types, where the body has them: some tokens are of a second text."""
    types = getattr(network.config, "type_vocab_size", 1)
    return {"token_type_ids": ids % 2} if types > 1 else {}


def answered(network: PreTrainedModel, ids: Tensor, positions: Tensor, **others: Any) -> Tensor:
    stands = {"position_ids": positions + first_position(network)}
    top: Tensor = network(input_ids=ids, **stands, **kinds_of(network, ids), **others).last_hidden_state
    return top


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("architecture", BODIES)
def test_a_packed_batch_answers_as_its_documents_one_by_one(
    architecture: str, rows: list[list[int]], dtype: torch.dtype
) -> None:
    network = body(architecture, dtype)
    ids, positions, starts = packed(rows)
    weights = torch.randn(*ids.shape, 32, generator=torch.Generator().manual_seed(1)).to(dtype)
    alone = torch.zeros_like(weights)
    for number, row in enumerate(rows):
        at = 0
        for length in row:
            part = (slice(number, number + 1), slice(at, at + length))
            top = answered(network, ids[part], positions[part])
            (top * weights[part]).sum().backward()
            alone[part] = top.detach()
            at += length
    wanted = {name: one.grad.clone() for name, one in network.named_parameters() if one.grad is not None}
    network.zero_grad()

    attend_within_documents(network)
    documents = documents_of(starts)
    assert bool(documents.classes) == (rows is ROWS["short"]), "both ways are to be tried"
    together = answered(network, ids, positions, documents=documents)
    (together * weights).sum().backward()
    exact = dtype is torch.float64 and architecture not in ROUNDS
    close = {"rtol": 1e-9, "atol": 1e-11} if exact else {"rtol": 2e-4, "atol": 2e-4}
    torch.testing.assert_close(together.detach(), alone, **close)
    for name, one in network.named_parameters():
        if name in wanted:
            assert one.grad is not None
            torch.testing.assert_close(one.grad, wanted[name], **close)
    other = answered(network, ids, positions).detach()
    assert not torch.allclose(other, alone, **close), "whole rows answer otherwise: the test can fail"


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_without_documents_padding_is_not_seen(architecture: str) -> None:
    network = body(architecture, torch.float64)
    ids, _, _ = packed([[20], [20]])
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    usual = network(input_ids=ids, attention_mask=mask).last_hidden_state
    attend_within_documents(network)
    ours = network(input_ids=ids, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(ours[mask == 1], usual[mask == 1], rtol=1e-9, atol=1e-11)


def test_dropout_thins_the_scores_of_a_network_in_training() -> None:
    network = body("bert", torch.float32)
    _, _, starts = packed(ROWS["short"])
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    attend_within_documents(network)
    read = document_attention.attend
    layer = network.encoder.layer[0].attention.self
    one = torch.randn(4, 2, 96, 16)
    first = read(layer, one, one, one, None, dropout=0.5, documents=documents_of(starts))[0]
    second = read(layer, one, one, one, None, dropout=0.5, documents=documents_of(starts))[0]
    assert not torch.equal(first, second)
    layer.eval()
    still = [read(layer, one, one, one, None, dropout=0.5, documents=documents_of(starts))[0] for _ in range(2)]
    assert torch.equal(*still)


def test_a_body_that_scores_by_more_than_queries_and_keys_refuses() -> None:
    """Why a recipe check refuses them before: T5 adds relative biases, XLNet computes its scores by itself."""
    ids, _, starts = packed([[20]])
    dims = {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2}
    biased = AutoModel.from_config(AutoConfig.for_model("t5", vocab_size=99, **dims))
    attend_within_documents(biased)
    with pytest.raises(ValueError, match="position bias"):
        biased(input_ids=ids, decoder_input_ids=ids, documents=documents_of(starts))
    dims = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 48}
    by_itself = AutoModel.from_config(AutoConfig.for_model("xlnet", vocab_size=99, **dims))
    with pytest.raises(RecipeError, match="xlnet: its attention cannot be restricted to documents"):
        attend_within_documents(by_itself)


def test_where_varlen_attention_runs_it_is_what_the_rows_say() -> None:
    if not torch.cuda.is_available():
        pytest.skip("varlen_attn needs CUDA, and there is none here; benchmarks/gpu_cases.py checks it where there is")
    network = body("bert", torch.float32).cuda().to(torch.bfloat16)
    ids, positions, starts = (one.cuda() for one in packed(ROWS["short"]))
    attend_within_documents(network)
    documents = documents_of(starts)
    varlen = answered(network, ids, positions, documents=documents)
    rows = answered(network, ids, positions, documents=documents._replace(bounds=None))
    torch.testing.assert_close(varlen, rows, rtol=5e-2, atol=5e-2)
