"""One pass over a text that trains word vectors, a unit of work: stochastic gradient descent in many small steps
(Mikolov et al. 2013, arXiv:1301.3781, §4.2).

Shapes: V words, N windows of a batch, K noise words of a window, D nodes of the longest path, H elements of a vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.parts.estimates.paragraph_epoch import kept_shares, noise_probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from pipelines.parts.estimates import TokenFile
    from pipelines.parts.estimates.word_windows import Candidates, Gradients, WordWindows

STATE = "state.npz"
CHUNK = 2**17
"""Tokens that are read at once; no window crosses their ends."""
LOSS_EVERY = 32
"""Steps of which the loss of one is computed."""
LOWEST = 1e-4
"""Share of the rate that is left at the end, as in the authors' code."""
LARGEST_STEP = 1.0
"""Most predictions of a batch that a vector is expected to have a part in, times the rate; the gradients of those with
more are scaled down to it. One after the other, predictions see what the others have changed; all at once they do not,
and the few most frequent words, or the root of a tree, would overshoot."""


@dataclass(frozen=True)
class Word2VecOptions:
    """What a pass depends on besides its text."""

    architecture: str
    output: str
    width: int
    window: int
    samples: int
    power: float
    """Exponent of counts in the noise distribution."""
    threshold: float
    """Subsampling threshold of frequent words; 0 keeps all."""
    rate: float
    epochs: int
    batch_words: int
    seed: int = 0


@dataclass(frozen=True)
class TrainingWindows:
    """The words of a batch's windows, with `window` words before the first centre and after the last."""

    ids: Tensor
    """int64 [N + 2 W]; 0 where the chunk has no more words."""
    windows: WordWindows
    candidates: Candidates
    done: float
    """Share of the text that was read before."""


@dataclass(frozen=True)
class Word2VecEpoch:
    """A pass over the text in its order; windows, noise and kept occurrences are random by its number and the
    seed."""

    home: Path
    """Folder with a folder for each finished epoch."""
    epoch: int
    text: TokenFile
    options: Word2VecOptions

    @property
    def name(self) -> str:
        return f"epoch-{self.epoch}"

    def __call__(self, folder: Path) -> None:
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # small products; and sums in one order, whatever the machine
        try:
            random = np.random.default_rng((self.epoch, self.options.seed))
            state = {name: torch.from_numpy(values) for name, values in self._state(random).items()}
            loss, measured = 0.0, 0
            with torch.no_grad():
                shares = {name: torch.from_numpy(values) for name, values in self._shares().items()}
                for number, batch in enumerate(self._batches(random)):
                    progress = (self.epoch + batch.done) / self.options.epochs
                    rate = self.options.rate * max(LOWEST, 1 - progress)
                    result = descend(state, batch, shares, self.options.architecture, rate)
                    if number % LOSS_EVERY == 0:
                        loss += float(result.loss) / len(batch.windows.low)
                        measured += 1
        finally:
            torch.set_num_threads(threads)
        tables: dict[str, Any] = {name: values.numpy() for name, values in state.items()}
        np.savez(folder / STATE, loss=loss / max(1, measured), **tables)
        if self.epoch > 1:  # this epoch replaces the one before the last
            (self.home / f"epoch-{self.epoch - 2}" / STATE).unlink(missing_ok=True)

    def _state(self, random: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Tables [V, H] after the epoch before; in the first, random inputs, and outputs of 0."""
        if self.epoch:
            with np.load(self.home / f"epoch-{self.epoch - 1}" / STATE) as stored:
                return {name: stored[name] for name in ("words", "outputs")}
        size, width = self.text.vocabulary_size, self.options.width
        words = np.asarray((random.random((size, width), dtype=np.float32) - 0.5) / width, dtype=np.float32)
        return {"words": words, "outputs": np.zeros((size, width), dtype=np.float32)}

    def _batches(self, random: np.random.Generator) -> Iterator[TrainingWindows]:
        import torch

        from pipelines.parts.estimates.word_windows import WordWindows

        tokens, kept, reach = self.text.tokens, kept_shares(self.text, self.options.threshold), self.options.window
        candidates = _Candidates(self.text, self.options)
        for begin in range(0, len(tokens), CHUNK):
            ids = np.asarray(tokens[begin : begin + CHUNK]).astype(np.int64)
            chosen = random.random(len(ids)) < kept[ids]
            document = np.cumsum(ids == self.text.end)[chosen]
            ids = ids[chosen]
            # a nearer neighbour is in more windows (arXiv:1301.3781, §3.2)
            sizes, at = random.integers(1, reach + 1, len(ids)), np.arange(len(ids))
            low = np.maximum(at - sizes, np.searchsorted(document, document, "left"))
            high = np.minimum(at + sizes + 1, np.searchsorted(document, document, "right"))
            drawn = candidates.drawn(ids, random)
            padded = torch.from_numpy(np.pad(ids, reach))
            # in a batch that begins at the word `first`, word i is i − first + reach
            edges = torch.from_numpy(np.stack([low, high]) + reach)
            for first in range(0, len(ids), self.options.batch_words):
                last = min(first + self.options.batch_words, len(ids))
                windows = WordWindows(edges[0, first:last] - first, edges[1, first:last] - first, reach)
                done = (begin + (first / len(ids)) * min(CHUNK, len(tokens) - begin)) / len(tokens)
                rows = torch.from_numpy(drawn[first:last])
                yield TrainingWindows(padded[first : last + 2 * reach], windows, candidates.of(rows), done)

    def _shares(self) -> dict[str, NDArray[np.float32]]:
        """float32 [V] by table: what the gradients of each vector are multiplied by, for `LARGEST_STEP`."""
        options, kept = self.options, kept_shares(self.text, self.options.threshold)
        centers = np.asarray(self.text.counts) * kept
        centers = centers / max(1.0, centers.sum())
        if options.output == "tree":
            nodes, turns = _paths(self.text)
            depths = (turns >= 0).sum(1)
            predicted = np.bincount(nodes[turns >= 0], np.repeat(centers, depths), len(centers))
            candidates = float(centers @ depths)
        else:
            predicted = centers + options.samples * noise_probabilities(self.text, options.power)
            candidates = 1.0 + options.samples
        # windows of a random size have window + 1 neighbours in the mean; CBOW divides by their number
        inputs = options.window + 1 if options.architecture == "skip_gram" else 1
        expected = {"words": centers * candidates, "outputs": predicted}
        steps = {name: options.rate * options.batch_words * inputs * each for name, each in expected.items()}
        return {
            name: (LARGEST_STEP / np.maximum(LARGEST_STEP, step)).astype(np.float32) for name, step in steps.items()
        }


class _Candidates:
    """The candidates of centres: themselves and noise words, or the nodes of their paths in a Huffman tree."""

    def __init__(self, text: TokenFile, options: Word2VecOptions) -> None:
        import torch

        self._samples = options.samples
        self._edges = np.cumsum(noise_probabilities(text, options.power))
        self._tree: tuple[Tensor, Tensor] | None = None
        if options.output == "tree":
            nodes, turns = _paths(text)
            self._tree = torch.from_numpy(nodes), torch.from_numpy(turns)

    def drawn(self, ids: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
        """int64 [N, 1 + K]: centres and noise words; [N, 1] for a tree."""
        if self._tree is not None:
            return ids[:, None]
        noise = np.searchsorted(self._edges, random.random((len(ids), self._samples)) * self._edges[-1])
        return np.concatenate([ids[:, None], noise], 1)

    def of(self, rows: Tensor) -> Candidates:
        """The candidates of `rows` [N, 1 + K] that were drawn."""
        import torch

        from pipelines.parts.estimates.word_windows import Candidates

        if self._tree is None:
            real = (rows != rows[:, :1]).float()
            real[:, 0] = 1
            targets = torch.zeros(1, rows.shape[1])
            targets[0, 0] = 1
            return Candidates(rows, targets, real)
        nodes, turns = (part[rows[:, 0]] for part in self._tree)
        deepest = int((turns >= 0).any(0).sum())
        turns = turns[:, :deepest]
        return Candidates(nodes[:, :deepest].clamp(min=0), turns.clamp(min=0).float(), (turns >= 0).float())


def _paths(text: TokenFile) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    from pipelines.networks.huffman import paths

    return paths(text.counts)


def descend(
    state: dict[str, Tensor], batch: TrainingWindows, shares: dict[str, Tensor], architecture: str, rate: float
) -> Gradients:
    """A step on the vectors of a batch's words and candidates, in `state`; returns its gradients."""
    from pipelines.parts.estimates.word_windows import cbow, skip_gram

    words, outputs, rows = state["words"], state["outputs"], batch.candidates.rows
    vectors = outputs.index_select(0, rows.flatten()).view(*rows.shape, -1)
    predicting = skip_gram if architecture == "skip_gram" else cbow
    result = predicting(
        words.index_select(0, batch.ids), batch.windows, vectors, batch.candidates, shares["outputs"][rows]
    )
    _add_rows(words, batch.ids, result.words.mul_(shares["words"][batch.ids].unsqueeze(1)), -rate)
    _add_rows(outputs, rows.flatten(), result.outputs.flatten(0, 1), -rate)
    return result


def _add_rows(table: Tensor, rows: Tensor, values: Tensor, factor: float) -> None:
    """Add `factor` times `values` [N, H] to `rows` [N] of a table, which may repeat."""
    table.scatter_add_(0, rows.unsqueeze(1).expand(-1, table.shape[1]), values.mul_(factor))
