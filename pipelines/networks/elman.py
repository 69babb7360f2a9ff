"""Elman network: a state that is a non-linear function of the word and of the state before (Elman 1990; Mikolov et al.
2010, "Recurrent neural network based language model", eq. 1 to 5).

    h(t) = tanh(W x(t) + U h(t − 1) + b)

Mikolov et al. take the logistic function, which is tanh but for scale and offset: tanh(a) = 2 σ(2a) − 1.
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn
from transformers import AutoModel, AutoModelForCausalLM

from pipelines.networks.attention_free import register_architecture
from pipelines.networks.recurrent import RecurrentConfig, RecurrentForCausalLM, RecurrentModel


class ElmanConfig(RecurrentConfig):
    """Dimensions of an Elman network."""

    model_type = "elman"


class ElmanModel(RecurrentModel):
    """The layers of an Elman network."""

    config_class = ElmanConfig
    states_per_layer: ClassVar[int] = 1

    @staticmethod
    def layer(width: int) -> nn.RNNBase:
        return nn.RNN(width, width, batch_first=True)


class ElmanForCausalLM(RecurrentForCausalLM):
    """An Elman network as a language model."""

    config_class = ElmanConfig
    backbone_class = ElmanModel


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(ElmanConfig, {AutoModel: ElmanModel, AutoModelForCausalLM: ElmanForCausalLM})
