"""A classifier over a plain AWD-LSTM: as Howard & Ruder 2018 fine-tune it (arXiv:1801.06146, §3.3 and §4.1), or all at
once under a linear layer over the mean, which suits few labels better. B texts of L tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from benchmarks.peers.awd_lstm import BETAS, CLIP, PlainAwdLstm, slanted_triangle

BLOCK = 50
"""Width of the classifier's hidden layer (§4.1)."""
PUBLISHED_LR, LOWER = 0.01, 2.6
"""Rate of the classifier, and by how much that of each layer below is divided (§3.2, §4.1)."""
PLAIN_LR = 5.0e-3


@dataclass(frozen=True)
class Labelled:
    """Texts as ids, and the index of the label of each."""

    texts: Sequence[Sequence[int]]
    labels: Sequence[int]


class PlainClassifier(nn.Module):
    """The language model's layers under a classifier."""

    def __init__(self, backbone: PlainAwdLstm, classes: int, published: bool) -> None:
        super().__init__()
        self.backbone, self.published = deepcopy(backbone), published
        width = backbone.config.hidden_size
        self.head: nn.Module = nn.Linear(width, classes)
        if published:
            self.head = nn.Sequential(
                *(nn.BatchNorm1d(3 * width), nn.Dropout(0.2), nn.Linear(3 * width, BLOCK), nn.ReLU()),
                *(nn.BatchNorm1d(BLOCK), nn.Dropout(0.1), nn.Linear(BLOCK, classes)),
            )

    def forward(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """[B, C]: scores of the classes."""
        lengths = torch.tensor([len(text) for text in texts])
        ids = pad_sequence([torch.tensor(text) for text in texts], batch_first=True)
        states, _, _ = self.backbone(ids)
        inside = (torch.arange(ids.shape[1]) < lengths[:, None]).unsqueeze(-1)
        mean = (states * inside).sum(1) / lengths[:, None]
        features = mean
        if self.published:
            last = states[torch.arange(len(texts)), lengths - 1]
            highest = states.masked_fill(~inside, float("-inf")).amax(1)
            features = torch.cat([last, highest, mean], dim=1)
        scores: Tensor = self.head(features)
        return scores

    def groups(self) -> list[list[nn.Parameter]]:
        """Parameters from the head down: each later group is a layer further below; the embeddings last."""
        layers = [[*one.parameters()] for one in reversed(self.backbone.layers)]
        return [[*self.head.parameters()], *layers, [*self.backbone.embeddings.parameters()]]


def train_classifier(
    backbone: PlainAwdLstm, train: Labelled, validation: Labelled, classes: int, epochs: int, batch: int, seed: int
) -> PlainClassifier:
    """The better on validation of the published fine-tuning and of the plain one, over the weights of `backbone`."""
    made = [_train(backbone, train, classes, epochs, batch, seed, published) for published in (True, False)]
    return max(made, key=lambda one: accuracy(one, validation))


def accuracy(network: PlainClassifier, examples: Labelled, batch: int = 64) -> float:
    """Share of `examples` that are classified right."""
    network.eval()
    right = 0
    with torch.inference_mode():
        for first in range(0, len(examples.texts), batch):
            chosen = network(examples.texts[first : first + batch]).argmax(1)
            right += int((chosen == torch.tensor(examples.labels[first : first + batch])).sum())
    return right / len(examples.texts)


def _train(
    backbone: PlainAwdLstm, train: Labelled, classes: int, epochs: int, batch: int, seed: int, published: bool
) -> PlainClassifier:
    torch.manual_seed(seed)
    network = PlainClassifier(backbone, classes, published).train()
    lr = PUBLISHED_LR if published else PLAIN_LR
    groups = network.groups()
    optimizer = torch.optim.Adam(
        [{"params": group, "lr": lr / (LOWER**depth if published else 1)} for depth, group in enumerate(groups)],
        betas=BETAS,
    )
    per_epoch = math.ceil(len(train.texts) / batch)
    total = epochs * per_epoch
    factor = (lambda step: slanted_triangle(step, total)) if published else (lambda step: 1 - step / total)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    for step, chosen in enumerate(_batches(len(train.texts), batch, epochs, seed)):
        thawed = step // per_epoch + 1 if published else len(groups)  # one more group each epoch (§3.3)
        for depth, group in enumerate(groups):
            for parameter in group:
                parameter.requires_grad_(depth < thawed)
        loss = cross_entropy(
            network([train.texts[index] for index in chosen]), torch.tensor([train.labels[index] for index in chosen])
        )
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        rates.step()
    return network


def _batches(examples: int, batch: int, epochs: int, seed: int) -> Iterator[list[int]]:
    """Indices of each step, in a new order each epoch; a last one alone joins those before, for its normalisation."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        order = torch.randperm(examples, generator=generator).tolist()
        for first in range(0, examples, batch):
            chosen = order[first : first + batch]
            yield chosen if len(chosen) > 1 else order[-batch:]
