"""Causal language modelling over classes of words (Goodman 2001, eq. 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, TrainingStep
from pipelines.parts.objectives.causal_lm import CausalLM
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.networks.class_softmax import ClassSoftmaxLM

CLASS_STATES = Signal.of_head("class_states")
"""[B, L, H]: the states from which class and word are predicted."""


class ClassLM(CausalLM, name="class_lm"):
    """Negative log-probability of the class of the next word, and of the word in its class; the tokens of `causal_lm`.

    Term: `class_lm`, in nats per token, so that exp of it is a perplexity like that of a full softmax.
    """

    paper = "Goodman 2001"
    needs_signals = frozenset({CLASS_STATES})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        network = cast("ClassSoftmaxLM", step.network)
        return {"class_lm": network.loss(step.signals[CLASS_STATES], self._targets(step.batch, step.network))}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"class_lm": int((self._targets(batch, network) >= 0).sum())}
