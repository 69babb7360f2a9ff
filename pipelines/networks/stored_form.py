"""Layers whose file holds other tensors than they compute with: codes, or a bitmask and the weights that it marks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn


class StoredForm(nn.Module):
    """A layer with `weight`, a buffer that no file holds; its state dictionary has the tensors of `stored` instead.

    Memory holds one of both forms. `weight` is where other code looks for the matrix of a layer.
    """

    stored_names: ClassVar[tuple[str, ...]]
    """Names of the tensors that a file holds of the layer, besides its parameters and its buffers."""
    weight: Tensor

    @abstractmethod
    def stored(self) -> dict[str, Tensor]:
        """What a file holds of `weight`, by `stored_names`."""

    @abstractmethod
    def restore(self, stored: Mapping[str, Tensor]) -> None:
        """Compute with what a file holds. Raises ValueError for tensors that do not belong together."""

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination.update({prefix + name: tensor for name, tensor in self.stored().items()})

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Mapping[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        own = {name: state_dict[prefix + name] for name in self.stored_names if prefix + name in state_dict}
        others = {key: value for key, value in state_dict.items() if key.removeprefix(prefix) not in own}
        super()._load_from_state_dict(others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        missing_keys += [prefix + name for name in self.stored_names if name not in own]
        if len(own) == len(self.stored_names):
            try:
                self.restore(own)
            except ValueError as error:
                error_msgs.append(f"{prefix.removesuffix('.')}: {error}")
