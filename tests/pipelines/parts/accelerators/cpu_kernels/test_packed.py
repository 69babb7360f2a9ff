"""A network whose rows hold several documents, with the kernels and without them."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from pipelines.networks import document_attention
from pipelines.networks.document_attention import attend_within_documents, documents_of
from pipelines.parts.accelerators.cpu_kernels.swapping import swap_modules
from tests.pipelines.parts.accelerators.cpu_kernels.graph import functions
from tests.pipelines.parts.accelerators.cpu_kernels.test_networks import network

ROWS, LENGTH = 3, 40


def gradients(body: PreTrainedModel, narrow: bool) -> tuple[Tensor, Tensor]:
    """The states, and the gradients of a loss over them by all weights, end to end."""
    made = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 100, (ROWS, LENGTH), generator=made)
    starts = torch.zeros_like(ids)
    starts[0, 17] = starts[1, 5] = starts[1, 30] = 1
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        states = body(ids, documents=documents_of(starts)).last_hidden_state
    weights = torch.linspace(-1, 1, states[0].numel(), dtype=torch.float64).view(states.shape[1:])
    (states.double() * weights).sum().backward()
    return states, torch.cat([one.grad.flatten().double() for one in body.parameters() if one.grad is not None])


@pytest.mark.parametrize("gathered", [True, False])
def test_documents_of_a_row(gathered: bool, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Side by side or under a mask: what ends a sub-layer and the inner layer are blocks, attention is the documents'
    own."""
    monkeypatch.setattr(document_attention, "WORTH_GATHERING", 2.0 if gathered else 0.0)
    plain = network("bert")
    attend_within_documents(plain)
    exact, faster = copy.deepcopy(plain).double(), copy.deepcopy(plain)
    assert swap_modules([faster], compiled)
    _, right = gradients(exact, narrow=False)
    _, usual = gradients(plain, narrow=True)
    states, ours = gradients(faster, narrow=True)
    assert {"ResidualNormFunctionBackward", "LinearGELUBackward"} <= functions(states)
    assert "SelfAttentionFunctionBackward" not in functions(states)

    def error(found: Tensor) -> float:
        return float((found - right).norm() / right.norm())

    assert error(usual) < 0.2
    assert error(ours) < max(1.5 * error(usual), 0.02)
