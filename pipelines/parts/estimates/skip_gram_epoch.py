"""One pass of skip-gram with negative sampling over a text, a unit of work (Mikolov et al. 2013, arXiv:1310.4546, eq.
4).

Shapes: V words, H elements of a vector, N words of a batch, S noise words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.parts.estimates.word_frequencies import STATE, kept_shares, noise_probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from pipelines.parts.estimates import TokenFile

SHARED_NOISE = 64
"""Noise words that all words of a batch share (Ji et al. 2016, arXiv:1604.04661)."""
SMALLEST = 1e-10
"""Added to sums of squared gradients before the first division by their root."""
TABLES = ("vectors", "outputs")


@dataclass(frozen=True)
class SkipGramOptions:
    """What a pass depends on besides its text and the vectors that it begins with."""

    window: int
    """Most neighbours on each side that a word predicts; how many is drawn for each word."""
    samples: float
    """Negatives of each neighbour, in expectation."""
    power: float
    """Exponent of counts in the noise distribution."""
    threshold: float
    """Subsampling threshold of frequent words; 0 keeps all."""
    rate: float
    batch_words: int
    seed: int = 0


@dataclass(frozen=True)
class SkipGramEpoch:
    """A pass over the text in an order that depends on its number and the seed."""

    home: Path
    """Folder with a folder for each finished pass."""
    phase: str
    epoch: int
    text: TokenFile
    options: SkipGramOptions
    start: Path
    """File with the `vectors` [V, H] and `outputs` [V, H] before the first pass."""

    @property
    def name(self) -> str:
        return f"{self.phase}-{self.epoch}"

    def __call__(self, folder: Path) -> None:
        import torch

        random = np.random.default_rng((self.epoch, self.options.seed))
        state = {name: torch.from_numpy(values) for name, values in self._state().items()}
        loss = 0.0
        with torch.no_grad():
            for ids, documents in self._batches(random):
                reach = random.integers(1, self.options.window + 1, len(ids))
                words, owners, reached, noise = map(torch.from_numpy, (ids, documents, reach, self._noise(random)))
                loss += train_batch(state, words, owners, reached, noise, self.options)
        tables: dict[str, Any] = {name: values.numpy() for name, values in state.items()}
        np.savez(folder / STATE, loss=loss, **tables)
        if self.epoch > 1:  # this pass replaces the one before the last
            (self.home / f"{self.phase}-{self.epoch - 2}" / STATE).unlink(missing_ok=True)

    def _state(self) -> dict[str, NDArray[np.float32]]:
        """Tables and their sums of squared gradients after the pass before."""
        path = self.home / f"{self.phase}-{self.epoch - 1}" / STATE if self.epoch else self.start
        with np.load(path) as stored:
            state = {name: values for name, values in stored.items() if name.removesuffix(" squares") in TABLES}
        return {f"{name} squares": np.zeros_like(state[name]) for name in TABLES} | state

    def _batches(self, random: np.random.Generator) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Words [N] and their documents [N] of about `batch_words` words that follow each other in the text."""
        tokens, kept = self.text.tokens, kept_shares(self.text, self.options.threshold)
        begins = np.arange(0, len(tokens), self.options.batch_words)
        for begin in random.permutation(begins).tolist():
            ids = np.asarray(tokens[begin : begin + self.options.batch_words]).astype(np.int64)
            documents = np.cumsum(ids == self.text.end)
            chosen = random.random(len(ids)) < kept[ids]
            if chosen.sum() > 1:
                yield ids[chosen], documents[chosen]

    def _noise(self, random: np.random.Generator) -> NDArray[np.int64]:
        edges = np.cumsum(noise_probabilities(self.text, self.options.power))
        return np.asarray(np.searchsorted(edges, random.random(SHARED_NOISE) * edges[-1]), dtype=np.int64)


def train_batch(
    state: dict[str, Tensor],
    ids: Tensor,
    documents: Tensor,
    reach: Tensor,
    noise: Tensor,
    options: SkipGramOptions,
) -> float:
    """One step of AdaGrad on the vectors of `ids` [N] and on the output vectors of their neighbours and of `noise` [S],
    in `state`; return the loss before it.

    −Σ log σ(v · o) over the neighbours within `reach` [N] in the same of the `documents` [N], and −Σ log σ(−v · n) over
    noise words, each of which counts samples / S times for every neighbour.
    """
    import torch
    from torch.nn.functional import softplus

    touched, numbers = torch.unique(torch.cat([ids, noise]), return_inverse=True)
    own, noises = numbers[: len(ids)], numbers[len(ids) :]
    table = state["outputs"][touched]
    centres, outputs, others = state["vectors"][ids], table[own], table[noises]
    of_centres, of_outputs = torch.zeros_like(centres), torch.zeros_like(outputs)
    neighbours = torch.zeros(len(ids), 1, dtype=centres.dtype)
    loss = 0.0
    for distance in range(1, min(options.window, len(ids) - 1) + 1):
        before, after = slice(None, -distance), slice(distance, None)
        same = documents[before] == documents[after]
        for centre, neighbour in ((before, after), (after, before)):
            real = (same & (reach[centre] >= distance)).unsqueeze(1)
            scores = (centres[centre] * outputs[neighbour]).sum(1, keepdim=True)
            loss += float((softplus(-scores) * real).sum())
            gradient = (scores.sigmoid() - 1) * real
            of_centres[centre] += gradient * outputs[neighbour]
            of_outputs[neighbour] += gradient * centres[centre]
            neighbours[centre] += real
    scores = centres @ others.T
    weight = neighbours * (options.samples / len(noise))
    loss += float((weight * softplus(scores)).sum())
    gradient = weight * scores.sigmoid()
    of_centres += gradient @ others
    of_noise = gradient.T @ centres
    size = len(touched)
    _descend(
        state, "vectors", touched, centres.new_zeros(size, centres.shape[1]).index_add_(0, own, of_centres), options
    )
    summed = outputs.new_zeros(size, outputs.shape[1]).index_add_(0, own, of_outputs).index_add_(0, noises, of_noise)
    _descend(state, "outputs", touched, summed, options)
    return loss


def _descend(state: dict[str, Tensor], name: str, rows: Tensor, gradient: Tensor, options: SkipGramOptions) -> None:
    """Step of AdaGrad on different `rows` [T] of a table with their `gradient` [T, H]."""
    squares = state[f"{name} squares"].index_select(0, rows).addcmul_(gradient, gradient)
    state[f"{name} squares"].index_copy_(0, rows, squares)
    state[name].index_add_(0, rows, gradient / (squares + SMALLEST).sqrt(), alpha=-options.rate)
