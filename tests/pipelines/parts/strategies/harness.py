"""A training loop of a few lines over tiny real networks: what a strategy says is what happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel

from pipelines.networks.sequence_classifier import SequenceClassifier
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.parts.strategies import ParameterGroup, Strategy, TrainingProgress
from pipelines.task_families import Task, TaskFamily
from pipelines.training.assembly.parameter_groups import trainable_groups

BETAS, EPSILON = (0.9, 0.98), 1e-6
TINY: dict[str, dict[str, Any]] = {
    "bert": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32},
    "roberta": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32},
    "electra": {
        "hidden_size": 16,
        "embedding_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    },
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "t5": {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2},
    "xlnet": {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32},
}
IDS = torch.randint(5, 60, (4, 10), generator=torch.Generator().manual_seed(0))
MASK = torch.ones_like(IDS)
LABELS = torch.tensor([0, 1, 2, 1])


def body(architecture: str) -> PreTrainedModel:
    """A tiny body in eval mode, always the same weights."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(architecture, vocab_size=64, pad_token_id=0, **TINY[architecture])
    return AutoModel.from_config(config, attn_implementation="eager").eval()


def classifier(seed: int = 0, architecture: str = "bert") -> SequenceClassifier:
    """A body of two layers under a head for three classes, in training mode."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model(architecture, vocab_size=64, pad_token_id=0, **TINY[architecture])
    config._attn_implementation = "eager"
    task = Task(TaskFamily.default(), ("a", "b", "c"))
    return cast(SequenceClassifier, SequenceClassificationHead(pooling="mean").build(config, task))


def optimizer_of(strategies: Sequence[Strategy], groups: Sequence[ParameterGroup], total: int) -> torch.optim.Optimizer:
    listed = [
        {
            "params": [parameter for _, parameter in group.parameters],
            "lr": group.lr,
            "weight_decay": group.weight_decay,
            "is_head": group.is_head,
        }
        for group in groups
    ]
    options = {"betas": BETAS, "eps": EPSILON}
    own = [one for strategy in strategies if (one := strategy.optimizer(listed, total, options)) is not None]
    return own[0] if own else torch.optim.AdamW(listed, fused=True, **options)


@dataclass
class Trained:
    """What happened in a short training."""

    network: SequenceClassifier
    moved: list[set[str]] = field(default_factory=list)
    """Names of the parameters that changed, at each step."""
    share: float = 0.0
    """Of the parameters of the network, those that could ever train."""


def train(strategies: Sequence[Strategy], steps: int = 4, per_epoch: int = 1, lr: float = 1e-2) -> Trained:
    """Train a new classifier for `steps`."""
    network = classifier()
    for strategy in strategies:
        strategy.add_modules(network)
    network.train()
    groups = trainable_groups(network, strategies, lr, 0.01)
    network.requires_grad_(False)
    remembered = [strategy.begin(network) for strategy in strategies]
    optimizer = optimizer_of(strategies, groups, steps)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / (2 * steps))
    said = Trained(network)
    trained = sum(parameter.numel() for group in groups for _, parameter in group.parameters)
    said.share = trained / sum(parameter.numel() for parameter in network.parameters())
    for step in range(steps):
        progress = TrainingProgress(step, steps, per_epoch)
        for group in groups:
            for _, parameter in group.parameters:
                parameter.requires_grad_(all(strategy.trains(group, progress) for strategy in strategies))
        before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(IDS, MASK).logits, LABELS)
        for strategy, memory in zip(strategies, remembered, strict=True):
            loss = sum(strategy.penalty(network, memory).values(), loss)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        rates.step()
        said.moved.append({name for name, value in network.named_parameters() if not value.equal(before[name])})
    return said


def answers(network: PreTrainedModel) -> Tensor:
    """Class scores of the fixed texts, without dropout and without gradient."""
    with torch.no_grad():
        logits: Tensor = network.eval()(IDS, MASK).logits
    return logits
