"""Word vectors by a weighted factorisation of logarithms of co-occurrences (Pennington, Socher & Manning 2014)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from pydantic import Field, PositiveInt

from pipelines.errors import DataError
from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.parts.estimates.glove_factors import CELLS, STATE, FactorEpoch, weighting
from pipelines.parts.estimates.weighted_neighbours import require_words, weighted_neighbours
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig


class Glove(Estimation, name="glove"):
    """Vectors and biases minimise Σ f(x) (w · w̃ + b + b̃ − log x)² over the cells x of the matrix of neighbours that
    are not 0, by AdaGrad; a word's vector is w + w̃ (§4.2).

    Cells are read in a random order, from random vectors, both by the seed of the stage. Gradients of a batch of cells
    are summed for each word before AdaGrad divides them; the authors' code takes one step for each cell, in as many
    threads as race for the tables. Special tokens, and words without neighbours, have vectors of 0.
    """

    paper = "doi:10.3115/v1/D14-1162"
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.STATIC})
    draws: ClassVar[bool] = True

    window: PositiveInt = 10
    """Tokens on each side that are neighbours; one at distance d counts 1 / d."""
    cutoff: float = Field(100.0, gt=0)
    """Co-occurrences from which on all cells weigh the same: x_max of equation 9."""
    power: float = Field(0.75, ge=0)
    """Exponent of the weight of smaller ones: α of equation 9."""
    epochs: int = Field(15, ge=1, le=1000)
    """Passes over the cells: 50 below 300 dimensions, 100 above, for corpora of billions of words (§4.2)."""
    lr: float = Field(0.05, gt=0)
    """Initial rate of AdaGrad."""
    batch_cells: int = Field(1024, ge=1)
    """Cells of one step."""

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        import torch

        require_words(text, self.name)
        size, width = text.vocabulary_size, int(config.hidden_size)
        matrix = weighted_neighbours(text, self.window).tocoo()
        if not matrix.nnz:
            raise DataError(
                f"{text.path}: no two words are within {self.window} tokens of each other in a document, so that there "
                "are no co-occurrences to factorise; raise estimate.window, or give the stage longer texts"
            )
        rows, columns = matrix.coords
        # a killed job wrote the same
        np.savez(
            workspace.folder / CELLS,
            rows=rows.astype(np.int64),
            columns=columns.astype(np.int64),
            weights=weighting(matrix.data, self.cutoff, self.power).astype(np.float32),
            logs=np.log(matrix.data).astype(np.float32),
        )
        for epoch in range(self.epochs):
            unit = FactorEpoch(workspace.folder, epoch, size, width, self.lr, self.batch_cells, workspace.seed)
            (finished,) = workspace.run([unit], workspace.folder)
        with np.load(finished / STATE) as stored:
            tables = torch.from_numpy(stored["tables"])
        vectors = (tables[0] + tables[1])[:, :width].numpy()
        vectors[np.bincount(rows, minlength=size) == 0] = 0.0
        return {"embeddings.weight": np.ascontiguousarray(vectors)}

    def tiny(self) -> Self:
        return self.model_copy(update={"epochs": min(self.epochs, 2)})
