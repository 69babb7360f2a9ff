"""Networks that would take far more memory than the weights in their folder: refused before memory is taken.

`refuse_unsafe` reads JSON and headers alone, and so it bounds what a configuration states. What an absent key stands
for, and what a record of heads and adapters adds up to, only the network itself shows: it is built on torch's meta
device, whose tensors have shapes and no memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pipelines.errors import RecipeError
from pipelines.models.opening import ModelRecord, build_network, open_config
from pipelines.safety.model_folders.tensor_files import checked_tensors

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PretrainedConfig

FACTOR = 2
"""How many times the weights in its folder a network may have: parts that a folder lacks are initialised."""
SLACK = 2**20
"""Weights that any network may have beyond that."""


def refuse_oversized(folder: Path) -> None:
    """Raise RecipeError where the network of config.json has far more weights than the safetensors in `folder` hold, or
    cannot be built. `folder` has passed `refuse_unsafe`; one without safetensors is not checked, as no network of torch
    is opened from it."""
    if not any(folder.glob("*.safetensors")):
        return
    config = open_config(folder)
    try:
        network = _network_without_memory(config)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, ArithmeticError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            reason = f"{'.'.join(str(part) for part in ('cursus', *first['loc']))}: {first['msg']}"
        raise RecipeError(f"{folder / 'config.json'}: no network can be built from it ({reason})") from None
    _refuse_larger(folder, network)


def _network_without_memory(config: PretrainedConfig) -> Module:
    import torch
    from transformers import AutoModel, AutoModelForSequenceClassification

    record = ModelRecord.read(config)
    with torch.device("meta"):
        if record is not None:
            # compressions change the values of weights, which are not there, and add none
            return build_network(record.model_copy(update={"changes": ()}), config)
        classifies = (config.architectures or [""])[0].endswith("ForSequenceClassification")
        kind: Any = AutoModelForSequenceClassification if classifies else AutoModel
        network: Module = kind.from_config(config)
    return network


def _refuse_larger(folder: Path, network: Module) -> None:
    """Raise RecipeError if `network`, of the configuration in `folder` and on torch's meta device, has far more weights
    than the safetensors in `folder` hold."""
    files = sorted(folder.glob("*.safetensors"))
    held = sum(entry.capacity for path in files for entry in checked_tensors(path).values())
    taken = sum(parameter.numel() for parameter in network.parameters())
    if taken > FACTOR * held + SLACK:
        raise RecipeError(
            f"{folder / 'config.json'}: its network has {taken:,} weights, and the safetensors in the folder hold "
            f"{held:,} at most; give a folder whose configuration and weights belong together"
        )
