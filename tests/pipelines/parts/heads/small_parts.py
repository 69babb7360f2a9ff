"""Small bodies, tasks and networks for the tests of heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoConfig

from pipelines.networks import register
from pipelines.parts.objectives import Objective, TrainingStep
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.parts.heads import Head, Signals
    from pipelines.task_families.encoding import EncodedExamples

ENCODER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
BODIES: dict[str, dict[str, Any]] = {
    "bert": ENCODER,
    "roberta": ENCODER,
    "electra": {**ENCODER, "embedding_size": 16},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2},
    "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64},
    "awd_lstm": {"hidden_size": 32, "inner_size": 48, "num_hidden_layers": 2},
    "word_vectors": {"hidden_size": 32},
}
"""`model_type` → dimensions of a small body."""


def small_config(body: str, tokenizer: PreTrainedTokenizerFast) -> PretrainedConfig:
    """The configuration of a small body for `tokenizer`."""
    register()
    config = AutoConfig.for_model(body, vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **BODIES[body])
    config._attn_implementation = "eager"
    return config


def small_network(
    head: Head, task: Task | None, tokenizer: PreTrainedTokenizerFast, body: str = "bert"
) -> PreTrainedModel:
    """A small network under `head`, in evaluation mode, the same at each call."""
    torch.manual_seed(0)
    return head.build(small_config(body, tokenizer), task).eval()


def task_of(family: str, *labels: str) -> Task:
    """A task of the family called `family`."""
    return Task(TaskFamily.model_validate(family), labels)


def tensors(encoded: EncodedExamples, chosen: np.ndarray) -> dict[Field, torch.Tensor]:
    """A batch of `encoded` as the loop makes it."""
    return {name: torch.from_numpy(value) for name, value in encoded.collate(chosen).items()}


def loss_of(
    objective: Objective, batch: dict[Field, torch.Tensor], signals: Signals, network: Any = None
) -> torch.Tensor:
    """The one term of `objective`."""
    (value,) = objective.loss(TrainingStep(batch, signals, network, lambda *_: {})).values()
    return value


def answers_after_training(
    head: Head,
    objective: Objective,
    network: PreTrainedModel,
    encoded: EncodedExamples,
    task: Task,
    tokenizer: PreTrainedTokenizerFast,
    steps: int,
) -> list[Any]:
    """The answers of `network` to all examples of `encoded`, as one batch, after `steps` of Adam on them."""
    items = np.arange(len(encoded))
    batch = tensors(encoded, items)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(steps):
        loss = loss_of(objective, batch, head.signals(network, batch, frozenset()))
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    outputs = [(items, batch, head.signals(network, batch, frozenset()))]
    return head.answer(network, encoded, outputs, task, tokenizer)
