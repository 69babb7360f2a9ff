"""Open saved model folders; the configuration records how the network was assembled.

config.json      `cursus`: the head, the strategies that added modules, the task; the rest is the backbone's own
model.safetensors
tokenizer files
companions/      companion networks, for the next stage with the same objective; absent if there are none
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, SerializeAsAny

from pipelines.errors import RecipeError
from pipelines.parts.heads import Head
from pipelines.parts.strategies import Strategy
from pipelines.task_families import Task, TaskFamily

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

CONFIG_KEY = "cursus"
"""Configuration key of the `ModelRecord`."""
COMPANIONS = "companions"
"""Subfolder of a model folder for companion networks."""


class ModelRecord(BaseModel):
    """Components from which a saved network is assembled again."""

    model_config = ConfigDict(frozen=True)

    head: SerializeAsAny[Head]
    extensions: tuple[SerializeAsAny[Strategy], ...] = ()
    """Strategies that added modules, in order."""
    family: SerializeAsAny[TaskFamily] | None = None
    labels: tuple[str, ...] = ()

    @property
    def task(self) -> Task | None:
        return None if self.family is None else Task(self.family, self.labels)

    def write(self, config: PretrainedConfig) -> None:
        """Write this record into `config`, which is saved with the network."""
        setattr(config, CONFIG_KEY, self.model_dump(mode="json"))

    @classmethod
    def read(cls, config: PretrainedConfig) -> ModelRecord | None:
        """Read the record in `config`; None for a folder that this project did not write."""
        record: dict[str, Any] | None = getattr(config, CONFIG_KEY, None)
        return None if record is None else cls.model_validate(record)


@dataclass(frozen=True)
class OpenedModel:
    """A loaded model, ready for inference."""

    record: ModelRecord
    network: PreTrainedModel
    """Frozen, in eval mode."""
    tokenizer: PreTrainedTokenizerFast


def open_config(folder: Path) -> PretrainedConfig:
    """Load the configuration in `folder`, of an architecture of transformers or of this project. RecipeError without
    one."""
    from transformers import AutoConfig

    from pipelines.networks import register

    register()
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise RecipeError(f"{folder}: no configuration that transformers can open ({error})") from None
    return config


def open_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """Load the tokenizer in `folder`. RecipeError without one."""
    from transformers import AutoTokenizer

    try:
        opened = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokenizer = cast("PreTrainedTokenizerFast", opened)
    except (OSError, ValueError, KeyError) as error:
        raise RecipeError(f"{folder}: no tokenizer that transformers can open ({error})") from None
    return tokenizer


def open_model(folder: Path, accelerator: str) -> OpenedModel:
    """Load the model that a stage saved in `folder`. RecipeError when it is not one, or its weights do not match."""
    config = open_config(folder)
    record = ModelRecord.read(config)
    if record is None:
        raise RecipeError(
            f"{folder}: its config.json has no key 'cursus' with the head; use the folder of a stage's result"
        )
    choose_attention(config, accelerator)
    network = build_network(record, config)
    weights = read_weights(folder)
    tied = set(getattr(network, "all_tied_weights_keys", None) or {})
    expected = network.state_dict()
    if mismatched := sorted((set(expected) - tied) ^ (set(weights) - tied)):
        raise RecipeError(
            f"{folder}: its weights do not match its configuration; the first mismatch is {mismatched[0]}"
        )
    network.load_state_dict(weights, strict=False)
    network.tie_weights()
    network.requires_grad_(False)
    network.eval()
    return OpenedModel(record, network, open_tokenizer(folder))


def build_network(record: ModelRecord, config: PretrainedConfig) -> PreTrainedModel:
    """Build the network of `record` over a backbone of `config`, with random weights; the record is written into
    `config`."""
    record.write(config)
    network = record.head.build(config, record.task)
    for extension in record.extensions:
        extension.extend(network)
    return network


def choose_attention(config: PretrainedConfig, accelerator: str) -> None:
    """Set eager attention on a CPU, where it is faster than the fused kernel at these lengths, especially in the
    backward pass; elsewhere let transformers choose."""
    config._attn_implementation = "eager" if accelerator == "cpu" else None


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Load the tensors in `folder` by name. RecipeError for anything but a valid safetensors file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / "model.safetensors"
    if not path.exists():
        raise RecipeError(
            f"{folder}: no model.safetensors; only safetensors are read (a pickled checkpoint can execute code); "
            "convert it "
            "with save_pretrained first"
        )
    try:
        weights: dict[str, Tensor] = load_file(path)
    except SafetensorError as error:
        raise RecipeError(f"{path}: damaged or not a safetensors file ({error})") from None
    return weights
