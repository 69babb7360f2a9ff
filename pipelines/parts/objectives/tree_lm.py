"""Causal language modelling over the paths of a tree of words (Morin & Bengio 2005; Mnih & Hinton 2008)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, TrainingStep
from pipelines.parts.objectives.causal_lm import CausalLM
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.networks.tree_softmax import TreeSoftmaxLM

TREE_STATES = Signal.of_head("tree_states")
"""[B, L, H]: the states from which the turns on a word's path are predicted."""


class TreeLM(CausalLM, name="tree_lm"):
    """Negative log-probability of all turns on the path to the next word; the tokens of `causal_lm`.

    Term: `tree_lm`, in nats per token, so that exp of it is a perplexity like that of a full softmax.
    """

    paper = "Mnih & Hinton 2008"
    needs_signals = frozenset({TREE_STATES})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        network = cast("TreeSoftmaxLM", step.network)
        return {"tree_lm": network.loss(step.signals[TREE_STATES], self._targets(step.batch, step.network))}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"tree_lm": int((self._targets(batch, network) >= 0).sum())}
