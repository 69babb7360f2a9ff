"""LSTM language model: stacked layers with a cell state behind input, forget and output gates, without dropout
(Hochreiter & Schmidhuber 1997; Gers et al. 2000; Sundermeyer, Schlüter & Ney 2012, §2).

    c(t) = f ⊙ c(t − 1) + i ⊙ tanh(…),   h(t) = o ⊙ tanh(c(t))
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn
from transformers import AutoModel, AutoModelForCausalLM

from pipelines.networks.attention_free import register_architecture
from pipelines.networks.recurrent import RecurrentConfig, RecurrentForCausalLM, RecurrentModel


class LstmConfig(RecurrentConfig):
    """Dimensions of an LSTM language model."""

    model_type = "lstm"


class LstmModel(RecurrentModel):
    """Stacked LSTM layers; the state of each is its output and its cell."""

    config_class = LstmConfig
    states_per_layer: ClassVar[int] = 2

    @staticmethod
    def layer(width: int) -> nn.RNNBase:
        return nn.LSTM(width, width, batch_first=True)


class LstmForCausalLM(RecurrentForCausalLM):
    """Stacked LSTMs as a language model."""

    config_class = LstmConfig
    backbone_class = LstmModel


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(LstmConfig, {AutoModel: LstmModel, AutoModelForCausalLM: LstmForCausalLM})
