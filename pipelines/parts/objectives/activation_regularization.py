"""Activation regularisation and temporal activation regularisation (Merity, McCann, Socher 2017, arXiv:1708.01009; used
in AWD-LSTM, arXiv:1708.02182, §4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class ActivationRegularization(Objective, name="activation_regularization"):
    """α · mean square of the outputs after dropout, and β · mean square of their change from token to token before it.

    Mean squares instead of the norms that the paper writes, as in its authors' code, whose α and β these are.
    """

    paper = "arXiv:1708.01009"
    may_read = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    needs_signals = frozenset({Signal.ACTIVATIONS})

    size: float = Option(2.0, ge=0)
    """α: factor of the mean square of the outputs."""
    change: float = Option(1.0, ge=0)
    """β: factor of the mean square of their change."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        dropped, raw = (states.float() for states in step.signals[Signal.ACTIVATIONS])
        change = raw[:, 1:] - raw[:, :-1]
        if (mask := step.batch.get(Field.ATTENTION_MASK)) is None:
            size, moved = dropped.square().mean(), change.square().mean()
        else:
            size, moved = _mean_square(dropped, mask), _mean_square(change, mask[:, 1:])
        return {"activation_size": self.size * size, "activation_change": self.change * moved}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        ids, mask = batch[Field.INPUT_IDS], batch.get(Field.ATTENTION_MASK)
        if mask is None:
            return {"activation_size": ids.numel(), "activation_change": ids[:, 1:].numel()}
        return {"activation_size": int(mask.sum()), "activation_change": int(mask[:, 1:].sum())}


def _mean_square(states: Tensor, mask: Tensor) -> Tensor:
    """Mean square of `states` [B, L, H] over the tokens where `mask` [B, L] is 1."""
    kept = mask.unsqueeze(-1).to(states.dtype)
    return (states.square() * kept).sum() / (kept.sum() * states.shape[-1]).clamp(min=1)
