"""Masked words with their part of speech and polarity (Ke et al. 2020, SentiLARE §3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field as Option

from pipelines.parts.heads import Batch, Head
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task

PART_OF_SPEECH_LOGITS = Signal.of_head("part_of_speech_logits")
"""[M, P]: scores of the parts of speech at the masked positions."""
POLARITY_LOGITS = Signal.of_head("polarity_logits")
"""[M, Q]: scores of the polarities at the masked positions."""
LAYERS = {PART_OF_SPEECH_LOGITS: "part_of_speech", POLARITY_LOGITS: "polarity"}
"""Signal → name of the linear layer that gives it."""


class LinguisticMaskedLMHead(MaskedLMHead, name="linguistic_masked_lm"):
    """Transformers' own masked-LM network, with linear layers for the part of speech and the polarity of each masked
    token.

    Plain transformers loads the saved folder as the architecture's masked-LM network and reports the weights
    `part_of_speech.*` and `polarity.*` as unused.
    """

    paper = "arXiv:1911.02493"
    provides = MaskedLMHead.provides | LAYERS.keys()

    parts_of_speech: int = Option(6, ge=2)
    """Number of values of the channel `part_of_speech`."""
    polarities: int = Option(4, ge=2)
    """Number of values of the channel `polarity`."""

    def continues(self, other: Head) -> bool:
        return self == other

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.backbone_with_head import linear

        network = super().build(config, task)
        for name, classes in (("part_of_speech", self.parts_of_speech), ("polarity", self.polarities)):
            network.add_module(name, linear(config.hidden_size, classes, config))
        return network

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        top, signals = self.top_and_signals(network, batch, requested)
        for signal in LAYERS.keys() & requested:
            chosen = top.flatten(0, 1)[batch[Field.MASKED_POSITIONS]]
            signals[signal] = network.get_submodule(LAYERS[signal])(chosen)
        return signals
