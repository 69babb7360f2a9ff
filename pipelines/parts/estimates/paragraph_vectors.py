"""Vectors of words and paragraphs that predict words (Le & Mikolov 2014, arXiv:1405.4053)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import psutil
from pydantic import Field

from pipelines.errors import DataError
from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.parts.estimates.vector_epoch import VectorEpoch, VectorOptions
from pipelines.parts.estimates.weighted_neighbours import require_words
from pipelines.parts.estimates.word_frequencies import STATE, noise_probabilities
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig

COPIES = 2
"""Tables of paragraphs in memory: the vectors, and one that is read or written."""

READ_WORDS = "words"
"""Name of the table of words that are read beside the paragraph; PV-DBOW has none."""


class ParagraphVectors(Estimation, name="paragraph_vectors"):
    """A table with one vector for each document of the text, trained with those of words to predict words against
    noise; the documents' own vectors are left behind, and any text's is inferred with the words frozen.

    A word is a step of stochastic gradient descent whose rate falls linearly to nothing, as in `word2vec`. Initial
    vectors, windows, noise and kept occurrences are random by the seed of the stage.
    """

    paper = "arXiv:1405.4053"
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.PARAGRAPHS})
    draws: ClassVar[bool] = True

    epochs: int = Field(10, ge=1, le=1000)
    """Passes over the text."""
    samples: int = Field(5, ge=1, le=1000)
    """Noise words of each word; the paper has a Huffman tree in their place."""
    power: float = Field(0.75, ge=0)
    """Exponent of counts in the noise distribution."""
    threshold: float = Field(1e-3, ge=0)
    """Subsampling threshold of frequent words, as in `context_windows`; 0 keeps all."""
    lr: float = Field(0.025, gt=0, le=1)
    """Rate at the beginning."""

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        require_words(text, self.name)
        require_memory(text, int(config.hidden_size))
        options = VectorOptions(
            architecture=str(config.paragraph_architecture),
            output="noise",
            width=int(config.hidden_size),
            seed=workspace.seed,
            window=int(config.window),
            rate=self.lr,
            **{name: value for name, value in self if name != "lr"},
        )
        config.samples = float(self.samples)
        for epoch in range(self.epochs):
            (finished,) = workspace.run([VectorEpoch(workspace.folder, epoch, text, options)], workspace.folder)
        with np.load(finished / STATE) as stored:
            read_words, outputs = stored.get(READ_WORDS), stored["outputs"]
        edges = np.cumsum(noise_probabilities(text, self.power))
        # words at equal shares of the distribution stand for it when vectors are inferred
        shares = (np.arange(int(config.noise_words)) + 0.5) / int(config.noise_words)
        weights = {"noise": np.searchsorted(edges, shares * edges[-1]).astype(np.int64)}
        if read_words is None:
            return {"embeddings.weight": outputs, **weights}
        return {"embeddings.weight": read_words, "outputs.weight": outputs, **weights}

    def tiny(self) -> Self:
        return self.model_copy(update={"epochs": min(self.epochs, 2)})


def require_memory(text: TokenFile, width: int) -> None:
    """Raise DataError, before anything is trained, for a text whose table of paragraphs does not fit into memory."""
    paragraphs = text.counts[text.end]
    needed, free = COPIES * 4 * paragraphs * width, psutil.virtual_memory().available
    if needed > free:
        raise DataError(
            f"{text.path}: a table of {paragraphs:,} paragraphs of {width} elements needs {needed / 2**30:.1f} GiB, "
            f"and {free / 2**30:.1f} GiB of memory are free; lower backbone.hidden_size, or read less text with "
            "budget.tokens"
        )
