"""The bfloat16 copies of weights: that they are what the weights are, whoever has changed these."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM

from pipelines.networks.vocabulary_loss import vocabulary_cross_entropy
from pipelines.parts.accelerators.cpu_kernels import bfloat16_copies
from pipelines.parts.accelerators.cpu_kernels.bfloat16_copies import bfloat16_weights
from pipelines.parts.accelerators.cpu_kernels.compiled_adamw import CompiledAdamW
from pipelines.parts.accelerators.cpu_kernels.swapping import swap_modules

OPTIONS: dict[str, Any] = {"lr": 1e-2, "betas": (0.9, 0.98), "eps": 1e-6}


def network(compiled: Path) -> BertForMaskedLM:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=16, attn_implementation="eager",
    )  # fmt: skip
    made = BertForMaskedLM(config).train()
    assert swap_modules([made], compiled)
    return made


def optimizer(body: nn.Module, decay: float = 0.1) -> CompiledAdamW:
    return CompiledAdamW(
        [{"params": list(body.parameters())}], clip=1.0, sparse_rows=True, **(OPTIONS | {"weight_decay": decay})
    )


def train(body: BertForMaskedLM, rule: torch.optim.Optimizer, begin: int, end: int) -> None:
    for step in range(begin, end):
        torch.manual_seed(step)
        ids = torch.randint(0, 60, (4, 16))
        with torch.autocast("cpu", torch.bfloat16):
            scores = body(input_ids=ids).logits
            loss = vocabulary_cross_entropy(scores, ids, inplace=True)
        rule.zero_grad()
        loss.backward()
        rule.step()


def weights(body: nn.Module) -> list[Tensor]:
    return [one for one in body.parameters() if one.ndim == 2]


def right(body: nn.Module) -> bool:
    with torch.no_grad():
        return all(torch.equal(bfloat16_weights(one), one.bfloat16()) for one in weights(body))


@pytest.mark.parametrize("decay", [0.1, 0.0])
def test_a_step_writes_them_with_the_weights(compiled: Path, decay: float) -> None:
    body = network(compiled)
    rule = optimizer(body, decay)
    train(body, rule, 0, 2)
    before = [one.detach().clone() for one in weights(body)]
    used = {one: kept.values.data_ptr() for one, kept in rule._copies.items() if kept.values is not None}
    asked = [one for name, one in body.named_parameters() if "layer" in name and one.ndim == 2]
    assert set(asked) <= set(used), "each layer's weight has a copy"
    train(body, rule, 2, 6)
    assert not any(torch.equal(one, other) for one, other in zip(before, weights(body), strict=True))
    for one, place in used.items():
        kept = rule._copies[one].values
        assert kept is not None and kept.data_ptr() == place
        assert torch.equal(kept, one.bfloat16()), "written by the step itself, nobody has asked"
    assert right(body)


def test_a_step_with_them_computes_the_same_bits(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, anew = network(compiled), network(compiled)
    train(kept, optimizer(kept), 0, 8)
    monkeypatch.setattr(bfloat16_copies, "register_copies", lambda weights, owner: {})
    monkeypatch.setattr(
        "pipelines.parts.accelerators.cpu_kernels.compiled_adamw.register_copies", bfloat16_copies.register_copies
    )
    rule = optimizer(anew)
    assert rule._copies == {}
    train(anew, rule, 0, 8)
    assert all(torch.equal(one, other) for one, other in zip(kept.parameters(), anew.parameters(), strict=True))


def test_query_key_and_value_lie_together(compiled: Path) -> None:
    body = network(compiled)
    rule = optimizer(body)
    train(body, rule, 0, 2)
    block = body.bert.encoder.layer[0].attention.self
    layers = [block.query.weight, block.key.weight, block.value.weight]
    whole = bfloat16_weights(*layers)
    assert whole.shape == (192, 64)
    assert whole.data_ptr() == bfloat16_weights(layers[0]).data_ptr(), "nothing is joined anew"
    assert torch.equal(whole, torch.cat(layers).bfloat16())
    swapped = bfloat16_weights(layers[1], layers[0])
    assert torch.equal(swapped, torch.cat([layers[1], layers[0]]).bfloat16()), "another order is another matrix"


def loaded(body: nn.Module) -> None:
    body.load_state_dict({name: value.flip(0) for name, value in body.state_dict().items()})


def written(body: nn.Module) -> None:
    with torch.no_grad():
        for one in weights(body):
            one.mul_(3)


def moved(body: nn.Module) -> None:
    for one in body.parameters():
        one.data = one.data * 2


@pytest.mark.parametrize("change", [loaded, written, moved])
def test_what_others_do_to_a_weight_is_noticed(compiled: Path, change: Callable[[nn.Module], None]) -> None:
    body = network(compiled)
    rule = optimizer(body)
    train(body, rule, 0, 2)
    change(body)
    assert right(body)
    change(body)
    train(body, rule, 2, 4)
    assert right(body)


def test_they_are_kept_no_longer_than_their_optimizer(compiled: Path) -> None:
    body = network(compiled)
    rule = optimizer(body)
    train(body, rule, 0, 2)
    del rule
    gc.collect()
    # which leaves no mark on what it changes
    train(body, torch.optim.AdamW(body.parameters(), fused=True, **OPTIONS), 2, 4)
    assert right(body)
    again = optimizer(body)
    train(body, again, 4, 6)
    assert right(body)


def test_nothing_of_them_is_saved_or_copied(compiled: Path) -> None:
    body = network(compiled)
    rule = optimizer(body)
    names = set(body.state_dict())
    train(body, rule, 0, 2)
    other = copy.deepcopy(body)
    assert set(body.state_dict()) == set(other.state_dict()) == names
    written(other)
    assert right(other) and right(body)
