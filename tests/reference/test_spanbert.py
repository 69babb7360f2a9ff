"""SpanBERT: the span-boundary equation in float64 (Joshi et al. 2019, §3.2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForMaskedLM,
    PreTrainedTokenizerFast,
)

from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.heads.span_boundary import SpanBoundaryHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.span_boundary import SpanBoundaryObjective
from pipelines.vocabulary import Field, Signal
from tests.reference.masked_text import build, masked_batch


@pytest.fixture(scope="module")
def batch(tokenizer: PreTrainedTokenizerFast) -> dict[Field, Tensor]:
    return masked_batch(tokenizer)


@pytest.fixture(scope="module")
def spans(batch: dict[Field, Tensor]) -> dict[Field, Tensor]:
    """Two masked spans in each row, of three tokens and of one; the corruption itself is tested where it lives."""
    width = batch[Field.INPUT_IDS].shape[1]
    starts = [(row * width + begin, length) for row in range(6) for begin, length in ((2, 3), (9, 1))]
    positions = torch.tensor([at + offset for at, length in starts for offset in range(length)])
    return {
        **batch,
        Field.MASKED_POSITIONS: positions,
        Field.MASKED_LABELS: batch[Field.ORIGINAL_IDS].flatten()[positions],
        Field.SPAN_EDGES: torch.tensor([[at - 1, at + length] for at, length in starts for _ in range(length)]),
        Field.SPAN_OFFSETS: torch.tensor([offset for _, length in starts for offset in range(length)]),
    }


@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra"])
@torch.no_grad()
def test_boundary_logits_are_the_papers_equation(
    architecture: str, spans: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast
) -> None:
    head = SpanBoundaryHead(positions=3, position_size=5)
    network = build(head, architecture, tokenizer)
    said = head.signals(network, spans, head.provides)
    weights = {name: value.double().numpy() for name, value in network.state_dict().items()}
    embeddings = network.get_input_embeddings().weight.double().numpy()
    top = said[Signal.HIDDEN_STATES][-1].double().numpy()

    def layer(x: np.ndarray, name: str) -> np.ndarray:
        y = x @ weights[f"boundary.{name}.weight"].T + weights[f"boundary.{name}.bias"]
        y = y * 0.5 * (1 + torch.erf(torch.from_numpy(y) / 2**0.5).numpy())
        y = (y - y.mean()) / np.sqrt(y.var() + network.config.layer_norm_eps)
        return y * weights[f"boundary.{name}_norm.weight"] + weights[f"boundary.{name}_norm.bias"]

    width = spans[Field.INPUT_IDS].shape[1]
    expected = []
    for (before, after), place in zip(
        spans[Field.SPAN_EDGES].tolist(), spans[Field.SPAN_OFFSETS].tolist(), strict=True
    ):
        p = weights["boundary.position_embeddings.weight"][place]
        x = np.concatenate([top[before // width, before % width], top[after // width, after % width], p])
        expected.append(embeddings @ layer(layer(x, "first"), "second") + weights["boundary.bias"])
    ours = said[Signal.BOUNDARY_LOGITS].double().numpy()
    # float32 over sums of some seventy terms of about one
    np.testing.assert_allclose(ours, np.array(expected), atol=2e-5)
    scores = np.array(expected)
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    labels = spans[Field.MASKED_LABELS].numpy()
    loss = SpanBoundaryObjective().loss(TrainingStep(spans, said, network, lambda *_: {}))["span_boundary"]
    assert float(loss) == pytest.approx(-logs[np.arange(len(labels)), labels].mean(), rel=1e-5)


@torch.no_grad()
def test_the_edges_alone_decide_and_far_places_share_the_last(
    spans: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast
) -> None:
    head = SpanBoundaryHead(positions=3, position_size=5)
    network = build(head, "bert", tokenizer)
    said = head.signals(network, spans, head.provides)
    # the first span's three tokens are read from the same edges and differ in their place only
    assert not torch.allclose(said[Signal.BOUNDARY_LOGITS][0], said[Signal.BOUNDARY_LOGITS][1])
    far = {**spans, Field.SPAN_OFFSETS: torch.where(spans[Field.SPAN_OFFSETS] == 2, 40, spans[Field.SPAN_OFFSETS])}
    wanted = frozenset({Signal.BOUNDARY_LOGITS})
    assert torch.equal(head.signals(network, far, wanted)[Signal.BOUNDARY_LOGITS], said[Signal.BOUNDARY_LOGITS])


@torch.no_grad()
def test_spanbert_opens_as_plain_bert(
    spans: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    head = SpanBoundaryHead()
    network = build(head, "bert", tokenizer)
    network.save_pretrained(tmp_path)
    opened, unmatched = AutoModelForMaskedLM.from_pretrained(
        tmp_path, attn_implementation="eager", output_loading_info=True
    )
    assert not unmatched["missing_keys"] and {name.partition(".")[0] for name in unmatched["unexpected_keys"]} == {
        "boundary"
    }
    mine = head.signals(network, spans, head.provides)[Signal.MASKED_LOGITS]
    theirs = MaskedLMHead().signals(opened.eval(), spans, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]
    assert torch.equal(mine, theirs)
