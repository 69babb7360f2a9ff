"""AWD-LSTM in plain torch, trained as its papers write it: Merity, Keskar & Socher 2017 (arXiv:1708.02182, §2, §4, §5)
for the network and its regularisation, Howard & Ruder 2018 (arXiv:1801.06146, §3.2 and §4.1) for the optimizer.

It shares no code with ours but the sizes. B rows of L tokens; H is the width of the embeddings and of the top layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, linear

if TYPE_CHECKING:
    from pipelines.networks.awd_lstm import AwdLstmConfig

State: TypeAlias = Sequence[tuple[Tensor, Tensor]]
"""Output and cell state [1, B, W] of each layer."""
BETAS = (0.7, 0.99)
LR = 4.0e-3
CLIP, WEIGHT_DECAY = 0.25, 1.2e-6
SIZE, CHANGE = 2.0, 1.0
"""α and β of the activation regularisations (Merity et al. 2017, §4.6)."""


class PlainAwdLstm(nn.Module):
    """Stacked LSTMs under dropout of words, elements and recurrent weights, with tied output weights."""

    def __init__(self, config: AwdLstmConfig) -> None:
        super().__init__()
        widths = [config.hidden_size, *[config.inner_size] * (config.num_hidden_layers - 1), config.hidden_size]
        self.config = config
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(nn.LSTM(below, width, batch_first=True) for below, width in pairwise(widths))
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        nn.init.uniform_(self.embeddings.weight, -0.1, 0.1)

    def forward(self, ids: Tensor, state: State | None = None) -> tuple[Tensor, Tensor, list[tuple[Tensor, Tensor]]]:
        """Top states [B, L, H] after and before their dropout, and the detached state after the last token."""
        rates, after = self.config, list[tuple[Tensor, Tensor]]()
        words = dropout(torch.ones(rates.vocab_size, 1), rates.embedding_dropout, self.training)
        states = self._locked(self.embeddings.weight[ids] * words[ids], rates.input_dropout)
        raw = states
        for index, one in enumerate(cast("Iterable[nn.LSTM]", self.layers)):
            zeros = states.new_zeros(1, len(ids), one.hidden_size)
            below, own, *biases = cast("list[Tensor]", one.all_weights[0])
            weights = [below, dropout(own, rates.weight_dropout, self.training), *biases]
            before = (zeros, zeros) if state is None else state[index]
            raw, output, cell = torch.lstm(states, before, weights, True, 1, 0.0, self.training, False, True)
            after.append((output.detach(), cell.detach()))
            top = index == len(self.layers) - 1
            states = self._locked(raw, rates.output_dropout if top else rates.inner_dropout)
        return states, raw, after

    def logits(self, states: Tensor) -> Tensor:
        """[…, V]: scores of the next token after `states` […, H]."""
        return linear(states, self.embeddings.weight, self.bias)

    def _locked(self, states: Tensor, rate: float) -> Tensor:
        """`states` [B, L, W] with the same elements dropped at every token of a row."""
        return states * dropout(states.new_ones(len(states), 1, states.shape[-1]), rate, self.training)


def slanted_triangle(step: int, total: int, cut_frac: float = 0.1, ratio: float = 32.0) -> float:
    """Factor of the rate at `step` of `total` (Howard & Ruder 2018, eq. 3)."""
    cut = max(1, math.floor(total * cut_frac))
    p = step / cut if step < cut else 1 - (step - cut) / (cut * (1 / cut_frac - 1))
    return (1 + max(p, 0.0) * (ratio - 1)) / ratio


def train_language_model(
    config: AwdLstmConfig, rows: Sequence[Tensor], begins: Sequence[bool], seed: int
) -> PlainAwdLstm:
    """A network trained on each of `rows` [B, L] once; `begins` says which do not continue the rows before."""
    torch.manual_seed(seed)
    network = PlainAwdLstm(config).train()
    optimizer = torch.optim.Adam(network.parameters(), lr=LR, betas=BETAS, weight_decay=WEIGHT_DECAY)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: slanted_triangle(step, len(rows)))
    state: State | None = None
    for ids, new in zip(rows, begins, strict=True):
        states, raw, state = network(ids, None if new else state)
        loss = cross_entropy(network.logits(states[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss = loss + SIZE * states.square().mean() + CHANGE * (raw[:, 1:] - raw[:, :-1]).square().mean()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        rates.step()
    return network.eval()
