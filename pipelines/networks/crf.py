"""Linear-chain conditional random fields (Lafferty, McCallum, Pereira 2001; Collobert et al. 2011, §3.3.2).

A chain of W words with tags y scores Σ emission[w, y_w] + Σ transition[y_w−1, y_w], start and end included; its
probability is the exponential of its score, divided by the sum of the exponentials over all chains.

Shapes: B chains, W words in the longest, C tags. Transitions are [C + 2, C + 2]; row C is from the start, column C + 1
to the end. An empty chain goes from the start to the end.
"""

from __future__ import annotations

import torch
from torch import Tensor


def log_partition(emissions: Tensor, transitions: Tensor, lengths: Tensor) -> Tensor:
    """[B]: log of the sum over all chains of exp(score), from `emissions` [B, W, C] of the first `lengths` int64 [B]
    words."""
    tags = emissions.shape[-1]
    steps = transitions[:tags, :tags].unsqueeze(0)
    scores = torch.where((lengths > 0).unsqueeze(1), transitions[tags, :tags] + emissions[:, 0], 0.0)
    for word in range(1, emissions.shape[1]):
        onward = torch.logsumexp(scores.unsqueeze(2) + steps, dim=1) + emissions[:, word]
        scores = torch.where((word < lengths).unsqueeze(1), onward, scores)
    ended = torch.logsumexp(scores + transitions[:tags, tags + 1], dim=1)
    return torch.where(lengths > 0, ended, transitions[tags, tags + 1])


def chain_score(emissions: Tensor, transitions: Tensor, chains: Tensor, lengths: Tensor) -> Tensor:
    """[B]: score of `chains` int64 [B, W], whose first `lengths` [B] tags count; the others may be any tag."""
    rows, words = chains.shape
    tags = emissions.shape[-1]
    valid = torch.arange(words, device=chains.device) < lengths.unsqueeze(1)
    ends = chains.new_full((rows, 1), tags + 1)
    path = torch.cat([chains.new_full((rows, 1), tags), torch.where(valid, chains, tags + 1), ends], dim=1)
    emitted = emissions.gather(2, chains.unsqueeze(2)).squeeze(2)
    # no transitions after the first end
    before_end = torch.cat([valid.new_ones(rows, 1), valid], dim=1)
    moved = transitions[path[:, :-1], path[:, 1:]]
    return torch.where(valid, emitted, 0.0).sum(1) + torch.where(before_end, moved, 0.0).sum(1)


@torch.no_grad()
def best_chains(emissions: Tensor, transitions: Tensor, lengths: Tensor) -> list[list[int]]:
    """The highest-scoring chain of each row, `lengths` tags long (Viterbi 1967)."""
    tags = emissions.shape[-1]
    steps = transitions[:tags, :tags].unsqueeze(0)
    scores = transitions[tags, :tags] + emissions[:, 0]
    origins: list[Tensor] = []
    for word in range(1, emissions.shape[1]):
        best, origin = (scores.unsqueeze(2) + steps).max(dim=1)
        scores = torch.where((word < lengths).unsqueeze(1), best + emissions[:, word], scores)
        origins.append(origin)
    last = (scores + transitions[:tags, tags + 1]).argmax(1).tolist()
    back = torch.stack(origins).tolist() if origins else []
    chains: list[list[int]] = []
    for row, length in enumerate(lengths.tolist()):
        chain = [last[row]]
        for word in range(length - 1, 0, -1):
            chain.append(back[word - 1][row][chain[-1]])
        chains.append(chain[::-1][:length])
    return chains
