"""Word vectors that predict words from their neighbours, a step for every prediction (Mikolov et al. 2013,
arXiv:1301.3781 and arXiv:1310.4546)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.parts.estimates.vector_epoch import VectorEpoch, VectorOptions
from pipelines.parts.estimates.weighted_neighbours import require_words
from pipelines.parts.estimates.word_frequencies import STATE
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig


class Word2Vec(Estimation, name="word2vec"):
    """Skip-gram or CBOW, against noise words or along the paths of a Huffman tree, by stochastic gradient descent whose
    rate falls linearly to nothing, as in the authors' code.

    A step changes only the vector of a word, or of a window, and of what it is compared with. Initial vectors, windows,
    noise and kept occurrences are random by the seed of the stage. The vectors of noise words and tree nodes are left
    behind. Special tokens are no words, and keep random vectors.
    """

    paper = "arXiv:1310.4546"
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.STATIC})
    draws: ClassVar[bool] = True

    architecture: Literal["skip_gram", "cbow"] = "skip_gram"
    """Whether each neighbour predicts the centre by itself, or the mean of all does."""
    output: Literal["noise", "tree"] = "noise"
    """Whether centres are compared with noise words (arXiv:1310.4546, §2.2), or reached in a Huffman tree (§2.1)."""
    window: int = Field(5, ge=1, le=100)
    """Most neighbours on each side; windows have random sizes up to it."""
    samples: int = Field(5, ge=1, le=1000)
    """Noise words of each window; without effect on a tree."""
    power: float = Field(0.75, ge=0)
    """Exponent of counts in the noise distribution."""
    threshold: float = Field(1e-3, ge=0)
    """Subsampling threshold of frequent words, as in `context_windows`; 0 keeps all."""
    epochs: int = Field(5, ge=1, le=1000)
    """Passes over the text."""
    lr: float = Field(0.025, gt=0, le=1)
    """Rate at the beginning."""

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        require_words(text, self.name)
        options = VectorOptions(
            width=int(config.hidden_size),
            seed=workspace.seed,
            rate=self.lr,
            **{name: value for name, value in self if name != "lr"},
        )
        for epoch in range(self.epochs):
            (finished,) = workspace.run([VectorEpoch(workspace.folder, epoch, text, options)], workspace.folder)
        with np.load(finished / STATE) as stored:
            return {"embeddings.weight": stored["words"]}

    def tiny(self) -> Self:
        return self.model_copy(update={"epochs": min(self.epochs, 2)})
