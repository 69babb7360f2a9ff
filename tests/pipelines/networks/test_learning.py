"""On real text, each of our bodies learns under each of its objectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from transformers import PretrainedConfig, PreTrainedTokenizerFast

from pipelines.parts.backbones.awd_lstm import AwdLstm
from pipelines.parts.backbones.word_vectors import WordVectorsBackbone
from pipelines.parts.corruptions import Corruption
from pipelines.parts.corruptions.context_windows import ContextWindows
from pipelines.parts.corruptions.negative_samples import NegativeSamples
from pipelines.parts.heads import Head
from pipelines.parts.heads.causal_lm import CausalLMHead
from pipelines.parts.heads.noise_prediction import NoisePredictionHead
from pipelines.parts.heads.path_prediction import PathPredictionHead
from pipelines.parts.layouts import Layout
from pipelines.parts.layouts.contiguous import Contiguous
from pipelines.parts.layouts.windows import Windows
from pipelines.parts.objectives import Objective, TrainingStep
from pipelines.parts.objectives.activation_regularization import ActivationRegularization
from pipelines.parts.objectives.causal_lm import CausalLM
from pipelines.parts.objectives.hierarchical_softmax import HierarchicalSoftmax
from pipelines.parts.objectives.negative_sampling import NegativeSampling
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import documents
from tests.streams import stream_of

if TYPE_CHECKING:
    from torch import Tensor

STEPS = 40


def batches(tokenizer: PreTrainedTokenizerFast, layout: Layout, corruptions: Sequence[Corruption] = ()) -> PlainBatches:
    stream = stream_of(documents("logging", "email", "http"), tokenizer)
    return PlainBatches(stream, tokenizer, layout, corruptions, rows=16, length=32, steps=STEPS, seed=0)


def losses(text: PlainBatches, head: Head, config: PretrainedConfig, objectives: Sequence[Objective]) -> list[float]:
    """The loss of every step of plain training, memory carried where the layout continues."""
    torch.manual_seed(0)
    network = head.build(config, None).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2, weight_decay=0)
    wanted = frozenset().union(*(objective.needs_signals for objective in objectives))
    memory: Any = None
    told = []
    for step, arrays in enumerate(text):
        batch: dict[Field, Any] = {Field(name): value for name, value in arrays.items()}
        if memory is not None and text.continues(step):
            batch[Field.MEMORY] = memory
        signals = head.signals(network, batch, wanted | (frozenset({Signal.MEMORY}) & head.provides))
        memory = signals.get(Signal.MEMORY)
        at = TrainingStep(batch, signals, network, lambda *_: {}, wanted)
        terms: list[Tensor] = [term for objective in objectives for term in objective.loss(at).values()]
        optimizer.zero_grad()
        torch.stack(terms).sum().backward()
        optimizer.step()
        told.append(float(terms[0].detach()))
    return told


@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
@pytest.mark.parametrize("tree", [False, True])
def test_word_vectors_learn(tokenizer: PreTrainedTokenizerFast, architecture: str, tree: bool) -> None:
    windows = ContextWindows(threshold=1e-2)
    text = batches(tokenizer, Windows(framed=False), [windows] if tree else [windows, NegativeSamples()])
    config = WordVectorsBackbone(hidden_size=32).config(tokenizer, 32)
    assert text.ids.counts is not None
    config.token_counts = text.ids.counts.tolist()
    head: Head = (
        PathPredictionHead(architecture=architecture) if tree else NoisePredictionHead(architecture=architecture)
    )
    told = losses(text, head, config, [HierarchicalSoftmax() if tree else NegativeSampling()])
    # an untrained output table scores everything 0: every decision costs log 2; draws that are the centre cost nothing
    assert tree or told[0] == pytest.approx(6 * np.log(2), abs=0.05)
    # a Huffman tree knows word frequencies before it has learnt anything: it gains from the context alone, which over
    # these few steps is about as much as batches differ
    assert np.mean(told[-10:]) < np.mean(told[:10]) - (0.02 if tree else 0.3)


def test_awd_lstm_learns_with_its_memory(tokenizer: PreTrainedTokenizerFast) -> None:
    body = AwdLstm(hidden_size=32, inner_size=48, num_hidden_layers=2)
    config = body.config(tokenizer, 32)
    told = losses(batches(tokenizer, Contiguous()), CausalLMHead(), config, [CausalLM(), ActivationRegularization()])
    assert told[0] == pytest.approx(np.log(len(tokenizer)), abs=0.1)
    assert np.mean(told[-5:]) < np.mean(told[:5]) - 0.5
