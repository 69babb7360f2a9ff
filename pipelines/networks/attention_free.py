"""Networks without attention, as transformers opens them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import AutoConfig, PretrainedConfig, PreTrainedModel


class AttentionFreeModel(PreTrainedModel):
    """Base class of networks that have no attention: whichever implementation a stage chooses, they support it."""

    supports_gradient_checkpointing = False
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True


def register_architecture(config: type[PretrainedConfig], networks: Mapping[Any, type[PreTrainedModel]]) -> None:
    """Let `AutoConfig` and the Auto classes that are the keys of `networks` open folders of `config.model_type`."""
    AutoConfig.register(config.model_type, config, exist_ok=True)
    for auto, network in networks.items():
        auto.register(config, network, exist_ok=True)
