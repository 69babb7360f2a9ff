"""Several heads on one backbone, each a network of its own that computes with the shared weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from pipelines.errors import RecipeError


class SeveralHeads(PreTrainedModel):
    """One backbone below the heads of `networks` (name → network), which must all be of the same architecture.

    The backbone is that of the first network; the backbones of the others are dropped. Weights of the backbone have the
    names that the architecture gives them, so that plain transformers can load the backbone from a saved folder; those
    of a head begin with `heads.<name>_head.`. Raises RecipeError for networks that are no backbone with a head.
    """

    config_class = PretrainedConfig
    supports_gradient_checkpointing = False
    _supports_sdpa = True
    _supports_attention_backend = True

    def __init__(self, config: PretrainedConfig, networks: Mapping[str, PreTrainedModel]) -> None:
        super().__init__(config)
        first = next(iter(networks.values()))
        self.base_model_prefix = prefix = first.base_model_prefix
        backbone = first.base_model
        self._no_split_modules = first._no_split_modules
        if pooling := [one for one in networks.values() if getattr(one.base_model, "pooler", None) is not None]:
            backbone.pooler = pooling[0].base_model.pooler
        setattr(self, prefix, backbone)
        self.heads = nn.Module()
        self._head_names = tuple(networks)
        self.all_tied_weights_keys: dict[str, str] = {}
        for name, network in networks.items():
            if network.base_model is network or network.base_model_prefix != prefix:
                raise RecipeError(
                    f"lines: {type(network).__name__} ({name}) and {type(first).__name__} do not separate into one "
                    "backbone and their heads; train them in stages of their own"
                )
            setattr(network, prefix, backbone)
            network.tie_weights()
            for target, source in (getattr(network, "all_tied_weights_keys", None) or {}).items():
                shared = source if source.startswith(f"{prefix}.") else f"heads.{name}_head.{source}"
                self.all_tied_weights_keys[f"heads.{name}_head.{target}"] = shared
            # the backbone stays an attribute of the head's network, but belongs to this one: its weights are listed,
            # moved and saved once
            del network._modules[prefix]
            network.__dict__[prefix] = backbone
            self.heads.add_module(f"{name}_head", network)
        self._tied_weights_keys = dict(self.all_tied_weights_keys)

    def head(self, name: str) -> PreTrainedModel:
        """The network of head `name`, over the shared backbone."""
        network: PreTrainedModel = self.heads.get_submodule(f"{name}_head")  # type: ignore[assignment]
        return network

    @property
    def head_names(self) -> tuple[str, ...]:
        """Names of the heads, in order."""
        return self._head_names

    def tie_weights(self, *arguments: Any, **options: Any) -> None:
        """Do nothing: weights were tied before the backbone was shared, and loading keeps them so."""

    def _init_weights(self, module: nn.Module) -> None:
        """Do nothing: every network initialised itself."""
