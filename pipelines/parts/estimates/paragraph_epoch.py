"""One pass over a text that trains words and paragraphs together, a unit of work (Le & Mikolov 2014, §2).

Shapes: D paragraphs of the text, V words, H elements of a vector, N words of a batch, S noise words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from pipelines.networks.paragraph_vectors import FlatWords
    from pipelines.parts.estimates import TokenFile

STATE = "state.npz"
SHARED_NOISE = 64
"""Noise words that all words of a batch share (Ji et al. 2016, arXiv:1604.04661)."""


@dataclass(frozen=True)
class ParagraphOptions:
    """What a pass depends on besides its text."""

    architecture: str
    width: int
    window: int
    samples: float
    """Negatives of each word, in expectation."""
    power: float
    """Exponent of counts in the noise distribution."""
    threshold: float
    """Subsampling threshold of frequent words; 0 keeps all."""
    rate: float
    paragraph_steps: int
    batch_words: int
    seed: int = 0


def noise_probabilities(text: TokenFile, power: float) -> NDArray[np.float64]:
    """float64 [V]: counts to `power`, as shares; 0 for special tokens."""
    counts = np.asarray(text.counts, dtype=np.float64)
    counts[list(text.special)] = 0
    weights = np.where(counts > 0, counts**power, 0.0)
    return np.asarray(weights / weights.sum())


def kept_shares(text: TokenFile, threshold: float) -> NDArray[np.float64]:
    """float64 [V]: probability that an occurrence is kept, √(t / f) + t / f; 0 for special tokens."""
    counts = np.asarray(text.counts, dtype=np.float64)
    counts[list(text.special)] = 0
    if not threshold:
        return np.where(counts > 0, 1.0, 0.0)
    share = np.divide(threshold * counts.sum(), counts, out=np.zeros_like(counts), where=counts > 0)
    return np.where(counts > 0, np.minimum(1.0, np.sqrt(share) + share), 0.0)


def pieces(text: TokenFile, size: int) -> NDArray[np.int64]:
    """int64 [P, 3]: begin and end (exclusive) in the text, and paragraph, of every run of at most `size` tokens; a
    paragraph is a document."""
    ends = np.flatnonzero(text.tokens == text.end)
    begins = np.concatenate([[0], ends[:-1] + 1])
    rows = [
        (first, min(first + size, end), paragraph)
        for paragraph, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True))
        for first in range(begin, end, size)
    ]
    return np.asarray(rows, dtype=np.int64).reshape(-1, 3)


@dataclass(frozen=True)
class ParagraphEpoch:
    """A pass over all paragraphs in a random order that depends on its number and the seed."""

    home: Path
    """Folder with a folder for each finished epoch."""
    epoch: int
    text: TokenFile
    options: ParagraphOptions

    @property
    def name(self) -> str:
        return f"epoch-{self.epoch}"

    def __call__(self, folder: Path) -> None:
        import torch

        random = np.random.default_rng((self.epoch, self.options.seed))
        state = {name: torch.from_numpy(values) for name, values in self._state(random).items()}
        loss = 0.0
        with torch.no_grad():
            for ids, paragraphs in self._batches(random):
                noise = torch.from_numpy(self._noise(random))
                loss += train_batch(state, torch.from_numpy(ids), torch.from_numpy(paragraphs), noise, self.options)
        tables: dict[str, Any] = {name: values.numpy() for name, values in state.items()}
        np.savez(folder / STATE, loss=loss, **tables)
        if self.epoch > 1:  # this epoch replaces the one before the last
            (self.home / f"epoch-{self.epoch - 2}" / STATE).unlink(missing_ok=True)

    def _state(self, random: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Tables and their sums of squared gradients after the epoch before; in the first, random inputs, and zeros."""
        if self.epoch:
            with np.load(self.home / f"epoch-{self.epoch - 1}" / STATE) as stored:
                return {name: values for name, values in stored.items() if name != "loss"}
        sizes = {"paragraphs": self.text.counts[self.text.end], "outputs": self.text.vocabulary_size}
        if self.options.architecture == "dm":
            sizes["words"] = self.text.vocabulary_size
        state: dict[str, NDArray[np.float32]] = {}
        for name, size in sizes.items():
            state[name] = np.zeros((size, self.options.width), dtype=np.float32)
            state[f"{name} squares"] = np.zeros_like(state[name])
            if name != "outputs":
                drawn = random.random(state[name].shape, dtype=np.float32)
                state[name] += (drawn - np.float32(0.5)) / self.options.width
        return state

    def _batches(self, random: np.random.Generator) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Words [N] and their paragraphs [N] of about `batch_words` words, whole runs of a paragraph."""
        tokens, kept = self.text.tokens, kept_shares(self.text, self.options.threshold)
        runs = random.permutation(pieces(self.text, self.options.batch_words))
        full = np.cumsum(runs[:, 1] - runs[:, 0]) // self.options.batch_words
        for batch in np.split(runs, np.flatnonzero(np.diff(full)) + 1):
            # runs of one paragraph in one batch are one text
            batch = batch[np.lexsort((batch[:, 0], batch[:, 2]))]
            ids = np.concatenate([tokens[begin:end] for begin, end, _ in batch.tolist()]).astype(np.int64)
            owners = np.repeat(batch[:, 2], batch[:, 1] - batch[:, 0])
            chosen = random.random(len(ids)) < kept[ids]
            if chosen.any():
                yield ids[chosen], owners[chosen]

    def _noise(self, random: np.random.Generator) -> NDArray[np.int64]:
        edges = np.cumsum(noise_probabilities(self.text, self.options.power))
        return np.asarray(np.searchsorted(edges, random.random(SHARED_NOISE) * edges[-1]), dtype=np.int64)


def train_batch(
    state: dict[str, Tensor], ids: Tensor, owners: Tensor, noise: Tensor, options: ParagraphOptions
) -> float:
    """Steps of AdaGrad on the vectors of the paragraphs `owners` [N] of words `ids` [N], then one on those of words, in
    `state`; return the loss before that."""
    import torch

    from pipelines.networks.paragraph_vectors import FlatWords, contrast, descend_paragraphs, paragraph_context

    touched, numbers = torch.unique(owners, return_inverse=True)
    words = FlatWords(ids, numbers)
    vectors, squares = state["paragraphs"][touched], state["paragraphs squares"][touched]
    table, weight = state["outputs"], options.samples / len(noise)
    read_words = state.get("words")
    context = paragraph_context(read_words, words, options.window)
    descend_paragraphs(vectors, squares, words, context, table, noise, weight, options.paragraph_steps, options.rate)
    state["paragraphs"][touched], state["paragraphs squares"][touched] = vectors, squares
    inputs = context.base + context.share * vectors[numbers]
    result = contrast(inputs, ids, table, noise, weight)
    gradient = torch.cat([result.words * inputs, result.noise.T @ inputs])
    _descend_rows(state, "outputs", torch.cat([ids, noise]), gradient, options.rate)
    if read_words is not None:
        _descend_rows(state, "words", ids, _of_neighbours(result.inputs * context.share, words, options), options.rate)
    return result.loss


def _of_neighbours(gradient: Tensor, words: FlatWords, options: ParagraphOptions) -> Tensor:
    from pipelines.networks.paragraph_vectors import window_sums

    return window_sums(gradient, words, options.window)[0]


def _descend_rows(state: dict[str, Tensor], name: str, ids: Tensor, gradient: Tensor, rate: float) -> None:
    """Step of AdaGrad on the rows `ids` [N] of a table, whose gradients [N, H] are summed for each row first."""
    import torch

    from pipelines.networks.paragraph_vectors import SMALLEST

    touched, numbers = torch.unique(ids, return_inverse=True)
    summed = gradient.new_zeros(len(touched), gradient.shape[1]).index_add_(0, numbers, gradient)
    squares = state[f"{name} squares"].index_select(0, touched).addcmul_(summed, summed)
    state[f"{name} squares"].index_copy_(0, touched, squares)
    state[name].index_add_(0, touched, summed / (squares + SMALLEST).sqrt(), alpha=-rate)
