"""GRU language model and encoder: stacked layers of gated recurrent units (Cho et al. 2014, arXiv:1406.1078, §2.3).

r = σ(W_r x + U_r h),   z = σ(W_z x + U_z h),   h ← z ⊙ h + (1 − z) ⊙ tanh(W x + r ⊙ (U h))
"""

from __future__ import annotations

from typing import ClassVar

from torch import nn
from transformers import AutoModel, AutoModelForCausalLM

from pipelines.networks.attention_free import register_architecture
from pipelines.networks.recurrent import RecurrentConfig, RecurrentForCausalLM, RecurrentModel


class GruConfig(RecurrentConfig):
    """Dimensions of a GRU network."""

    model_type = "gru"


class GruModel(RecurrentModel):
    """Stacked GRU layers; the state of each is its output."""

    config_class = GruConfig
    states_per_layer: ClassVar[int] = 1

    @staticmethod
    def layer(width: int) -> nn.RNNBase:
        return nn.GRU(width, width, batch_first=True)


class GruForCausalLM(RecurrentForCausalLM):
    """Stacked GRUs as a language model."""

    config_class = GruConfig
    backbone_class = GruModel


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(GruConfig, {AutoModel: GruModel, AutoModelForCausalLM: GruForCausalLM})
