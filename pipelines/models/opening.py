"""A saved model folder as a network: what it was saved with is written in its configuration.

config.json      `cursus`: the head, the strategies that added modules, the task; the rest is the body's own
model.safetensors
tokenizer files
companions/      networks that trained beside it, for the next stage with the same objective; absent where none did
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

RECORD = "cursus"
"""Configuration key that says how a folder's network was put together."""
COMPANIONS = "companions"
"""Folder, inside a model's, of the networks that trained beside it."""


class Record(BaseModel):
    """How a saved network is put together again."""

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
        """Note this in `config`, which is saved with the network."""
        setattr(config, RECORD, self.model_dump(mode="json"))

    @classmethod
    def read(cls, config: PretrainedConfig) -> Record | None:
        """What `config` says; None for a folder that this house did not write."""
        noted: dict[str, Any] | None = getattr(config, RECORD, None)
        return None if noted is None else cls.model_validate(noted)


@dataclass(frozen=True)
class Opened:
    """A saved model, ready to answer."""

    record: Record
    network: PreTrainedModel
    """Frozen, in eval mode."""
    tokenizer: PreTrainedTokenizerFast


def open_config(folder: Path) -> PretrainedConfig:
    """The configuration in `folder`, of an architecture of transformers or of ours. RecipeError when there is none."""
    from transformers import AutoConfig

    from pipelines.networks import register

    register()
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise RecipeError(f"{folder}: no configuration that transformers can open ({error})") from None
    return config


def open_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer saved in `folder`. Raises RecipeError when there is none."""
    from transformers import AutoTokenizer

    try:
        opened = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokenizer = cast("PreTrainedTokenizerFast", opened)
    except (OSError, ValueError, KeyError) as error:
        raise RecipeError(f"{folder}: no tokenizer that transformers can open ({error})") from None
    return tokenizer


def open_model(folder: Path, accelerator: str) -> Opened:
    """The model a stage saved in `folder`. Raises RecipeError when it is not one, or its weights are not the network's."""
    config = open_config(folder)
    record = Record.read(config)
    if record is None:
        raise RecipeError(
            f"{folder}: its config.json does not say which head it was trained with; name a stage's result"
        )
    choose_attention(config, accelerator)
    network = put_together(record, config)
    weights = read_weights(folder)
    tied = set(getattr(network, "all_tied_weights_keys", None) or {})
    wanted = network.state_dict()
    if unfit := sorted((set(wanted) - tied) ^ (set(weights) - tied)):
        raise RecipeError(f"{folder}: its weights are not those of its configuration, beginning with {unfit[0]}")
    network.load_state_dict(weights, strict=False)
    network.tie_weights()
    network.requires_grad_(False)
    network.eval()
    return Opened(record, network, open_tokenizer(folder))


def put_together(record: Record, config: PretrainedConfig) -> PreTrainedModel:
    """The network that `record` describes over a body of `config`, with random weights, noted in its configuration."""
    record.write(config)
    network = record.head.build(config, record.task)
    for extension in record.extensions:
        extension.extend(network)
    return network


def choose_attention(config: PretrainedConfig, accelerator: str) -> None:
    """Plain matrix products beat the fused kernel on a CPU at these lengths, forward and far more so backward; elsewhere
    transformers takes the best that the architecture has."""
    config._attn_implementation = "eager" if accelerator == "cpu" else None


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors in `folder` by name. Raises RecipeError for anything but a sound safetensors file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / "model.safetensors"
    if not path.exists():
        raise RecipeError(
            f"{folder}: no model.safetensors; only safetensors are read (a pickled checkpoint can run code), convert it "
            "with save_pretrained first"
        )
    try:
        weights: dict[str, Tensor] = load_file(path)
    except SafetensorError as error:
        raise RecipeError(f"{path}: damaged or not a safetensors file ({error})") from None
    return weights
