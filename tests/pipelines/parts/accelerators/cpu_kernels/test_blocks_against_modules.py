"""Blocks that compute for the modules inside them, and when they leave it to them."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from transformers.models.bert.modeling_bert import BertIntermediate, BertOutput, BertSelfAttention
from transformers.models.megatron_bert.modeling_megatron_bert import MegatronBertOutput
from transformers.models.roberta.modeling_roberta import RobertaSelfOutput

from pipelines.networks.adapter import AdaptedDropout, Bottleneck
from pipelines.parts.accelerators.cpu_kernels.eligibility import same_bytecode
from pipelines.parts.accelerators.cpu_kernels.residual import FusedResidual
from pipelines.parts.accelerators.cpu_kernels.swapping import with_block
from tests.pipelines.parts.accelerators.cpu_kernels.graph import functions
from tests.pipelines.parts.accelerators.cpu_kernels.test_blocks import made, narrow, said

FUSED = {"ResidualNormFunctionBackward", "LinearGELUBackward", "SelfAttentionFunctionBackward"}
KINDS = {BertOutput: "dense", BertIntermediate: "dense", BertSelfAttention: "key"}


def given(kind: Callable[..., nn.Module]) -> tuple[Tensor, ...]:
    return (narrow(2, 5, 80), narrow(2, 5, 48)) if kind is BertOutput else (narrow(2, 5, 48),)


def fused(module: nn.Module, *inputs: Tensor) -> bool:
    return bool(functions(said(module, *inputs)) & FUSED)


def test_blocks_are_known_by_their_program() -> None:
    assert issubclass(with_block(RobertaSelfOutput), FusedResidual) and issubclass(
        with_block(RobertaSelfOutput), RobertaSelfOutput
    )
    assert with_block(RobertaSelfOutput) is with_block(RobertaSelfOutput)
    assert with_block(RobertaSelfOutput).__name__ == "RobertaSelfOutput"
    assert with_block(MegatronBertOutput) is MegatronBertOutput  # adds, and normalises elsewhere
    assert with_block(nn.Linear) is nn.Linear
    assert with_block(with_block(BertOutput)) is with_block(BertOutput)

    class Scaled(BertOutput):
        def forward(self, hidden_states: Tensor, input_tensor: Tensor) -> Tensor:
            hidden_states = self.dense(hidden_states)
            hidden_states = self.dropout(hidden_states)
            hidden_states = self.LayerNorm(hidden_states - input_tensor)
            return hidden_states  # noqa: RET504  # as BERT's, but for one sign

    assert with_block(Scaled) is Scaled
    assert not same_bytecode(Scaled.forward, BertOutput.forward) and not same_bytecode(len, BertOutput.forward)


@pytest.mark.parametrize("kind", KINDS)
def test_who_listens_to_a_module_inside_hears_it(kind: Callable[..., nn.Module]) -> None:
    module, heard = made(kind), []
    assert fused(module, *given(kind))
    inner = module.get_submodule(KINDS[kind])  # type: ignore[index]
    for listen in (
        lambda: inner.register_forward_hook(lambda *_: heard.append(1)),
        lambda: inner.register_forward_pre_hook(lambda *_: heard.append(1)),
        lambda: inner.register_full_backward_hook(lambda *_: heard.append(1)),
        lambda: nn.modules.module.register_module_forward_hook(lambda *_: heard.append(1)),
    ):
        handle = listen()  # type: ignore[no-untyped-call]
        heard.clear()
        result = said(module, *given(kind))
        assert not functions(result) & FUSED
        result.float().sum().backward()
        assert heard
        handle.remove()
    assert fused(module, *given(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_left_to_the_modules_outside_a_narrow_training_step(kind: Callable[..., nn.Module]) -> None:
    module, inputs = made(kind), given(kind)
    with torch.autocast("cpu", torch.float16):
        other = module(*inputs) if kind is not BertSelfAttention else module(*inputs)[0]
    assert not functions(other) & FUSED
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        module(*inputs)
    assert not fused(module.eval(), *inputs)
    module.train()
    wide = [one.detach().float() for one in inputs]
    plain = module(*wide)
    assert not functions(plain[0] if isinstance(plain, tuple) else plain) & FUSED


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_left_to_the_modules_where_one_of_them_is_another(kind: Callable[..., nn.Module]) -> None:
    class Double(nn.Module):
        def forward(self, weight: Tensor) -> Tensor:
            return 2 * weight

    module = made(kind)
    parametrize.register_parametrization(module.get_submodule(KINDS[kind]), "weight", Double())  # type: ignore[index]
    assert not fused(module, *given(kind))
    module = made(kind)
    setattr(module, KINDS[kind], nn.Linear(80 if kind is BertOutput else 48, 80 if kind is BertIntermediate else 48))
    assert not fused(module, *given(kind))


def test_an_adapter_is_not_passed_by() -> None:
    module = made(BertOutput)
    module.dropout = AdaptedDropout(0.1, Bottleneck(48, 8, 0.1))
    said(module, *given(BertOutput)).float().square().sum().backward()
    assert all(one.grad is not None for one in module.dropout.parameters())


def test_another_activation_is_not_passed_by() -> None:
    module = made(BertIntermediate, hidden_act="relu")
    result = said(module, *given(BertIntermediate))
    assert not functions(result) & FUSED and (result >= 0).all()
    assert not fused(made(BertIntermediate, hidden_act="gelu_python"), *given(BertIntermediate))


def test_weights_of_attention_are_there_for_who_asks() -> None:
    module, inputs = made(BertSelfAttention), given(BertSelfAttention)
    with torch.autocast("cpu", torch.bfloat16):
        assert module(*inputs)[1] is None
        assert module(*inputs, output_attentions=True)[1].shape == (2, 3, 5, 5)
        module.register_forward_hook(lambda *_: None)
        assert module(*inputs)[1].shape == (2, 3, 5, 5)


def test_other_ways_to_attend_are_left_alone() -> None:
    module = made(BertSelfAttention, attn_implementation="sdpa")
    assert not fused(module, *given(BertSelfAttention))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_frozen_has_no_gradient(kind: Callable[..., nn.Module]) -> None:
    whole = made(kind)
    names = [name for name, _ in whole.named_parameters()]
    inputs = given(kind)
    said(whole, *inputs).float().square().sum().backward()
    for only in [*names, "inputs"]:
        module = made(kind)
        for name, one in module.named_parameters():
            one.requires_grad_(name == only)
        read = tuple(one.detach().requires_grad_(only == "inputs") for one in inputs)
        result = said(module, *read)
        assert functions(result) & FUSED
        result.float().square().sum().backward()
        for name, one in module.named_parameters():
            assert (one.grad is not None) is (name == only)
            if name == only:
                assert torch.equal(one.grad, whole.get_parameter(name).grad)  # type: ignore[arg-type]
        for mine, before in zip(read, inputs, strict=True):
            assert mine.grad is None if only != "inputs" else torch.equal(mine.grad, before.grad)


def test_a_copy_computes_by_itself() -> None:
    module = made(BertOutput)
    other = copy.deepcopy(module)
    assert type(other) is type(module)
    nn.init.zeros_(other.LayerNorm.weight)  # type: ignore[arg-type, union-attr]
    nn.init.zeros_(other.LayerNorm.bias)  # type: ignore[arg-type, union-attr]
    inputs = given(BertOutput)
    assert said(module, *inputs).any() and not said(other, *inputs).any()
