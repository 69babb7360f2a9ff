"""Unstructured pruning by magnitude, at once or gradually (Gordon, Duh & Andrews 2020; Zhu & Gupta 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import Field, PositiveInt

from pipelines.errors import RecipeError
from pipelines.parts.compressions import Calibration, Change, Compression, Level

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class MagnitudePruning(Compression, name="magnitude_pruning"):
    """Set the smallest weights of every matrix in the layers of the backbone to zero, where they stay (Gordon et al.
    2020, §2.1); embeddings, biases, normalisation and head keep theirs.

    With `gradually`, the zeros of a matrix grow in the course of the stage's training: s · (1 − (1 − t / n)³) of its
    weights after t of n updates (Zhu & Gupta 2017, eq. 1, from 0 on). The record holds the share alone: the zeros are
    in the weights, and later stages keep them too. Raises RecipeError for a backbone without layers of matrices.
    """

    paper = "arXiv:2002.08307"
    level = Level.WEIGHTS

    share: float = Field(0.3, gt=0, lt=1)
    """Share of the weights of each matrix that become zero; up to 0.4 cost BERT nothing (Gordon et al. 2020, §4.1)."""
    gradually: float = Field(0.0, ge=0, le=1)
    """Share of the stage's optimizer steps in the course of which weights become zero; 0: all of them before the first
    step."""
    updates: PositiveInt = 100
    """Number of times n that zeros are added, where they are `gradually`."""

    @property
    def complete_after(self) -> float:
        return self.gradually

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        from pipelines.networks.masked_weights import matrices_of_layers

        matrices = matrices_of_layers(network.base_model)
        if not matrices:
            raise RecipeError(
                f"compression {self.name}: the backbone {network.config.model_type} has no layers of matrices"
            )
        return {name: {"zeros": self.share} for name in matrices}

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        from pipelines.networks.masked_weights import weight_of, zero_smallest

        if not self.gradually:
            for name, values in change.items():
                zero_smallest(weight_of(network.base_model.get_submodule(name)), values["zeros"])
        return network

    def constraint(self, network: PreTrainedModel, change: Change) -> Callable[[float], None]:
        from pipelines.networks.masked_weights import KeptZeros, weight_of

        keep = KeptZeros(weight_of(network.base_model.get_submodule(name)) for name in change)
        return lambda progress: keep(self._zeros_after(progress))

    def _zeros_after(self, progress: float) -> float:
        """Share of zeros when `progress` of the stage's steps are done."""
        if progress >= self.gradually:
            return self.share
        done = int(self.updates * progress / self.gradually) / self.updates
        return self.share * (1 - (1 - done) ** 3)
