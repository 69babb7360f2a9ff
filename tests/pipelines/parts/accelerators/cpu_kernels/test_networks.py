"""Whole networks with the kernels beside the same without them, and beside float64."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel

from pipelines.parts.accelerators.cpu_kernels.attention import NAME
from pipelines.parts.accelerators.cpu_kernels.linear import KernelLinear
from pipelines.parts.accelerators.cpu_kernels.swapping import swap_modules
from tests.pipelines.parts.accelerators.cpu_kernels.graph import functions

SIZES = {
    "bert": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96},
    "roberta": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96},
    "electra": {
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
        "embedding_size": 32,
    },
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4},
    "xlnet": {"d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 96},
    "t5": {"d_model": 64, "d_kv": 16, "num_layers": 2, "num_heads": 4, "d_ff": 96},
}  # fmt: skip
INTERFACE = {"bert", "roberta", "electra", "gpt2", "t5"}
"""Those that ask for their attention by its name."""
BERT = {"ResidualNormFunctionBackward", "LinearGELUBackward", "SelfAttentionFunctionBackward"}
FUSED_BLOCKS = {
    **dict.fromkeys(("bert", "roberta", "electra"), BERT),
    "t5": {
        "RMSNormFunctionBackward",
        "SelfAttentionFunctionBackward",
        "FeedForwardFunctionBackward",
        "DropoutAddFunctionBackward",
    },
}
"""Functions that are whole blocks of those that have some."""


def network(kind: str, dropout: float = 0.0) -> PreTrainedModel:
    """A small body of random weights, as `fit` hands it over."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, vocab_size=100, **SIZES[kind])
    config._attn_implementation = "eager"
    made: PreTrainedModel = AutoModel.from_config(config).train()
    for module in made.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
        if type(module).__name__ == "T5Attention":
            module.dropout = dropout
    return made


def inputs(kind: str) -> dict[str, Tensor]:
    """Two texts, one of them shorter."""
    made = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 100, (2, 12), generator=made)
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    given = {"input_ids": ids, "attention_mask": mask}
    return given | ({"decoder_input_ids": ids[:, :7]} if kind == "t5" else {})


def gradients(body: PreTrainedModel, kind: str, narrow: bool) -> tuple[Tensor, dict[str, Tensor]]:
    """The states, and what a loss over them says of every weight."""
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        states = body(**inputs(kind)).last_hidden_state
    if narrow and is_faster(body):
        assert functions(states) & set().union(*FUSED_BLOCKS.values()) == FUSED_BLOCKS.get(kind, set())
    weights = torch.linspace(-1, 1, states[0].numel(), dtype=torch.float64).view(states.shape[1:])
    (states.double() * weights).sum().backward()
    return states.detach(), {name: one.grad.clone() for name, one in body.named_parameters() if one.grad is not None}


def is_faster(body: PreTrainedModel) -> bool:
    """Whether it was given the kernels."""
    return any(type(module) is KernelLinear for module in body.modules())


@pytest.mark.parametrize("kind", SIZES)
def test_a_network_learns_as_well_as_without(kind: str, compiled: Path) -> None:
    """Beside float64, the kernels' gradients err by no more than autocast's, or than states that are rounded to
    bfloat16."""
    plain = network(kind)
    exact, faster = copy.deepcopy(plain).double(), copy.deepcopy(plain)
    names = set(faster.state_dict())
    assert swap_modules([faster], compiled)
    assert set(faster.state_dict()) == names
    assert (faster.config._attn_implementation == NAME) is (kind in INTERFACE)
    _, right = gradients(exact, kind, narrow=False)
    _, usual = gradients(plain, kind, narrow=True)
    _, ours = gradients(faster, kind, narrow=True)
    assert set(ours) == set(usual)

    def error(found: dict[str, Tensor]) -> float:
        apart = sum(float((found[name].double() - value).square().sum()) for name, value in right.items())
        return (apart / sum(float(value.square().sum()) for value in right.values())) ** 0.5

    assert error(ours) < max(1.5 * error(usual), 0.02)
    assert error(usual) < 0.2


@pytest.mark.parametrize("kind", SIZES)
def test_in_float32_it_says_the_same(kind: str, compiled: Path) -> None:
    """Where the hardware knows no bfloat16, and in evaluation."""
    plain = network(kind)
    faster = copy.deepcopy(plain)
    swap_modules([faster], compiled)
    wanted, usual = gradients(plain, kind, narrow=False)
    said, ours = gradients(faster, kind, narrow=False)
    torch.testing.assert_close(said, wanted, rtol=1e-4, atol=1e-4)
    for name, value in usual.items():
        torch.testing.assert_close(ours[name], value, rtol=1e-3, atol=1e-3 * float(value.abs().max()) + 1e-6)
    with torch.no_grad():
        torch.testing.assert_close(
            faster.eval()(**inputs(kind)).last_hidden_state, plain.eval()(**inputs(kind)).last_hidden_state,
            rtol=1e-4, atol=1e-4,
        )  # fmt: skip


@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5"])
def test_dropout_is_a_function_of_the_seed(kind: str, compiled: Path) -> None:
    faster = network(kind, dropout=0.2)
    swap_modules([faster], compiled)
    said = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        faster.zero_grad()
        said.append(gradients(faster, kind, narrow=True))
    assert torch.equal(said[0][0], said[1][0])
    assert all(torch.equal(said[0][1][name], value) for name, value in said[1][1].items())
    assert not torch.equal(said[0][0], said[2][0])


def test_a_classifier_with_frozen_weights_sends_them_no_gradient(compiled: Path) -> None:
    body = network("bert")
    swap_modules([body], compiled)
    for name, parameter in body.named_parameters():
        parameter.requires_grad_("layer.1" in name)
    _, found = gradients(body, "bert", narrow=True)
    assert found and all("layer.1" in name for name in found)


def test_a_class_derived_from_torchs_is_left_alone(compiled: Path) -> None:
    class Other(nn.Linear):
        def forward(self, states: Tensor) -> Tensor:
            return 2 * super().forward(states)

    body = network("bert")
    body.pooler.dense = Other(64, 64)
    swap_modules([body], compiled)
    assert type(body.pooler.dense) is Other
