"""Companions as a training loop grants them, without a loop."""

from __future__ import annotations

from transformers import PretrainedConfig, PreTrainedModel

from pipelines.parts.heads import Head
from pipelines.parts.objectives import Batch, Companion, Signals
from pipelines.vocabulary import Signal


class Beside:
    """What an objective without a teacher may ask for."""

    def __init__(self, network: PreTrainedModel) -> None:
        self.network = network

    def teacher(self) -> Companion:
        raise AssertionError("this objective was said to need no teacher")

    def trained(self, name: str, head: str, config: PretrainedConfig) -> Companion:
        chosen = Head.model_validate(head)
        network = chosen.build(config, None).eval()

        def forward(batch: Batch, wanted: frozenset[Signal]) -> Signals:
            return chosen.signals(network, batch, wanted)

        return Companion(network, forward, trains=True)
