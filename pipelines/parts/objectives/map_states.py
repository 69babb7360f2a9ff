"""A map of states into the space of another encoder, learnt from aligned words (Wang et al. 2019, Cross-Lingual BERT
Transformation for Zero-Shot Dependency Parsing)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.errors import RecipeError
from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

ALIGNED = Field.of_channel("aligned_states")
"""float32 [B, L, H]: the state, in another encoder, of the word that a token's word is aligned with; 0 for none."""


class MapStates(Objective, name="map_states"):
    """Squared distance ‖x − y‖² between the top state of a token and that of its aligned word in another encoder, mean
    over the tokens that have one.

    With the strategy `state_map` x is W h, for the state h of the frozen encoder. Raises RecipeError for states of
    another width.
    """

    paper = "arXiv:1909.06775"
    needs_fields = frozenset({ALIGNED})
    needs_signals = frozenset({Signal.HIDDEN_STATES})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        aligned = cast("Tensor", step.batch[ALIGNED])
        states = cast("Tensor", step.signals[Signal.HIDDEN_STATES][-1]).float()
        if states.shape[-1] != aligned.shape[-1]:
            raise RecipeError(
                f"{self.name}: the states of this encoder have {states.shape[-1]} elements, and those of the encoder "
                f"that the annotation reads {aligned.shape[-1]}; give both backbones the same hidden_size"
            )
        known = aligned.any(-1)
        distances = (states - aligned).square().sum(-1)
        return {self.name: (distances * known).sum() / known.sum().clamp(min=1)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {self.name: int(batch[ALIGNED].any(-1).sum())}
