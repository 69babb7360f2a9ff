"""One pass over a text that trains vectors of words, and of its documents, a unit of work: stochastic gradient descent
with a step for every prediction (Mikolov et al. 2013, arXiv:1301.3781, §4.2; Le & Mikolov 2014, arXiv:1405.4053).

Shapes: V words, D documents, N words of a chunk of the text, H elements of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.parts.estimates.word_frequencies import STATE, kept_shares, noise_probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.parts.estimates import TokenFile
    from pipelines.parts.estimates.compiled.vector_steps import Predictions

READ = {"skip_gram": ("words",), "cbow": ("words",), "dm": ("words", "paragraphs"), "dbow": ("paragraphs",)}
"""Tables of the vectors that predict, by architecture; what is predicted has vectors in `outputs`."""
CHUNK = 2**17
"""Tokens that are read at once; no window crosses their ends."""
LOWEST = 1e-4
"""Share of the rate that is left at the end, as in the authors' code."""


@dataclass(frozen=True)
class VectorOptions:
    """What a pass depends on besides its text."""

    architecture: str
    """One of `READ`."""
    output: str
    """`noise` or `tree`."""
    width: int
    window: int
    samples: int
    power: float
    """Exponent of counts in the noise distribution."""
    threshold: float
    """Subsampling threshold of frequent words; 0 keeps all."""
    rate: float
    epochs: int
    seed: int = 0


@dataclass(frozen=True)
class VectorEpoch:
    """A pass over the text in its order; windows, noise and kept occurrences are random by its number and the
    seed."""

    home: Path
    """Folder with a folder for each finished epoch."""
    epoch: int
    text: TokenFile
    options: VectorOptions

    @property
    def name(self) -> str:
        return f"epoch-{self.epoch}"

    def __call__(self, folder: Path) -> None:
        from pipelines.parts.estimates.compiled import vector_steps

        random = np.random.default_rng((self.epoch, self.options.seed))
        state, descend = self._state(random), getattr(vector_steps, self.options.architecture)
        loss, measured = 0.0, 0
        for predictions in self.predictions(random):
            loss += descend(state, predictions)
            measured += -(-len(predictions.ids) // vector_steps.LOSS_EVERY)
        tables: dict[str, Any] = state
        np.savez(folder / STATE, loss=loss / max(1, measured), **tables)
        if self.epoch > 1:  # this epoch replaces the one before the last
            (self.home / f"epoch-{self.epoch - 2}" / STATE).unlink(missing_ok=True)

    def _state(self, random: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Tables after the epoch before; in the first, random inputs, and outputs of 0."""
        if self.epoch:
            with np.load(self.home / f"epoch-{self.epoch - 1}" / STATE) as stored:
                return {name: values for name, values in stored.items() if name != "loss"}
        sizes = {"words": self.text.vocabulary_size, "paragraphs": self.text.counts[self.text.end]}
        state = {"outputs": np.zeros((self.text.vocabulary_size, self.options.width), dtype=np.float32)}
        for name in READ[self.options.architecture]:
            drawn = random.random((sizes[name], self.options.width), dtype=np.float32)
            state[name] = np.asarray((drawn - 0.5) / self.options.width, dtype=np.float32)
        return state

    def predictions(self, random: np.random.Generator) -> Iterator[Predictions]:
        """What is predicted, a chunk of the text at a time."""
        from pipelines.parts.estimates.compiled.vector_steps import Predictions

        tokens, kept, reach = self.text.tokens, kept_shares(self.text, self.options.threshold), self.options.window
        candidates, finished = self._candidates(random), 0
        for begin in range(0, len(tokens), CHUNK):
            ids = np.asarray(tokens[begin : begin + CHUNK]).astype(np.int32)
            chosen = random.random(len(ids)) < kept[ids]
            ends = ids == self.text.end
            document = (finished + np.cumsum(ends))[chosen]
            finished += int(ends.sum())
            if not chosen.any():
                continue
            ids = ids[chosen]
            _, first, which, size = np.unique(document, return_index=True, return_inverse=True, return_counts=True)
            # a nearer neighbour is in more windows (arXiv:1301.3781, §3.2)
            sizes, position = random.integers(1, reach + 1, len(ids)), np.arange(len(ids))
            low = np.maximum(position - sizes, first[which])
            high = np.minimum(position + sizes + 1, (first + size)[which])
            progress = (begin + position / len(ids) * min(CHUNK, len(tokens) - begin)) / len(tokens)
            left = np.maximum(LOWEST, 1 - (self.epoch + progress) / self.options.epochs)
            yield Predictions(
                ids,
                document.astype(np.int32),
                low.astype(np.int32),
                high.astype(np.int32),
                *candidates(ids),
                (self.options.rate * left).astype(np.float32),
            )

    def _candidates(
        self, random: np.random.Generator
    ) -> Callable[[NDArray[np.int32]], tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]]:
        """A function from centres [N] to the fields `at`, `rows` and `targets` of their predictions: themselves and
        noise words, or the nodes of their paths in a Huffman tree."""
        if self.options.output == "tree":
            from pipelines.networks.huffman import paths

            nodes, turns = paths(self.text.counts)
            tree = np.maximum(nodes, 0).astype(np.int32), np.maximum(turns, -1).astype(np.int8)
            return lambda ids: (ids, *tree)
        from scipy.stats.sampling import DiscreteAliasUrn

        noise = DiscreteAliasUrn(noise_probabilities(self.text, self.options.power), random_state=random)

        def drawn(ids: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]:
            words = np.asarray(noise.rvs((len(ids), self.options.samples)), dtype=np.int32)
            rows = np.concatenate([ids[:, None], words], 1)
            targets = np.where(rows == ids[:, None], -1, 0).astype(np.int8)
            targets[:, 0] = 1
            return np.arange(len(ids), dtype=np.int32), rows, targets

        return drawn
