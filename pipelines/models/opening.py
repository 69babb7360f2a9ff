"""Open saved model folders; the configuration records how the network was assembled.

config.json      `cursus`: the head, the strategies that added modules, the changes of compressions, the task; the rest
                 is the backbone's own
model.safetensors
tokenizer files
companions/      companion networks, for the next stage with the same objective; absent if there are none
features/        tokenizers of the networks that it reads, which are part of its weights; absent if there are none
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

from pipelines.errors import RecipeError
from pipelines.models.features import FEATURES, feature_settings
from pipelines.models.text_states import located
from pipelines.models.weights import read_weights
from pipelines.parts.annotations import Annotation
from pipelines.parts.attention import AttentionPattern
from pipelines.parts.compressions import Change, Compression
from pipelines.parts.embeddings import Embedding
from pipelines.parts.heads import FeatureTokenizer, Head
from pipelines.parts.knowledge import Knowledge
from pipelines.parts.strategies import Strategy
from pipelines.task_families import Task, TaskFamily

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

CONFIG_KEY = "cursus"
"""Configuration key of the `ModelRecord`."""
COMPANIONS = "companions"
"""Subfolder of a model folder for companion networks."""


class RecordedChange(BaseModel):
    """What a compression changed of a network beyond its configuration."""

    model_config = ConfigDict(frozen=True)

    compression: SerializeAsAny[Compression]
    modules: dict[str, Any]
    """The change: path of a module below the backbone → what was changed of it."""


class HeadRecord(BaseModel):
    """A head of a saved network, and the task that it answers."""

    model_config = ConfigDict(frozen=True)

    head: SerializeAsAny[Head]
    family: SerializeAsAny[TaskFamily] | None = None
    labels: tuple[str, ...] = ()
    annotations: tuple[SerializeAsAny[Annotation], ...] = Field((), exclude_if=lambda value: not value)
    """What makes the channels that the network reads."""
    attention: SerializeAsAny[AttentionPattern] | None = Field(None, exclude_if=lambda value: value is None)
    """Pattern that the network was trained with."""
    knowledge: SerializeAsAny[Knowledge] | None = Field(None, exclude_if=lambda value: value is None)
    """What is injected into its examples; in a saved folder, its files are relative to that."""

    @property
    def task(self) -> Task | None:
        return None if self.family is None else Task(self.family, self.labels, self.annotations)


def serve_together(heads: Sequence[Head]) -> bool:
    """Whether one head computes for all lines with `heads`: they are equal, and belong to no task.

    A head on plain text belongs to no task, and neither does one that generates its answers as text.
    """
    first = heads[0]
    return all(head == first for head in heads) and (len(heads) == 1 or not first.reads or not first.answers_from)


class LineRecord(HeadRecord):
    """The head of one line of a network with several."""

    corpus: tuple[str, ...] = ()
    """Corpora that the line was trained on; for a labelled line, its task."""


def _located(record: HeadRecord, folder: Path) -> dict[str, Any]:
    annotations = tuple(located(one, folder, open_lines) for one in record.annotations)
    return {"knowledge": record.knowledge and record.knowledge.within(folder), "annotations": annotations}


class ModelRecord(HeadRecord):
    """Components from which a saved network is assembled again.

    Of a network with several heads, `head`, `family` and `labels` are those of the first line.
    """

    embeddings: tuple[SerializeAsAny[Embedding], ...] = Field((), exclude_if=lambda value: not value)
    """Embeddings of channels that the backbone adds to its input."""
    extensions: tuple[SerializeAsAny[Strategy], ...] = ()
    """Strategies that added modules, in order."""
    lines: dict[str, LineRecord] = Field({}, exclude_if=lambda value: not value)
    """Line → its head, of a network with several; empty where a single head serves all."""
    changes: tuple[RecordedChange, ...] = Field((), exclude_if=lambda value: not value)
    """Changes of compressions, in the order in which they were made."""

    def changed(self, compression: Compression, change: Change) -> ModelRecord:
        """This record after one more change; an empty change is in the configuration already."""
        if not change:
            return self
        one = RecordedChange(compression=compression, modules=dict(change))
        return self.model_copy(update={"changes": (*self.changes, one)})

    @property
    def several_heads(self) -> bool:
        """Whether the lines have heads of their own, not one that serves all."""
        return bool(self.lines) and not serve_together([line.head for line in self.lines.values()])

    def of_line(self, name: str) -> ModelRecord:
        """The record of the network of line `name` alone."""
        line = self.lines[name]
        own = {key: getattr(line, key) for key in HeadRecord.model_fields}
        return ModelRecord(**own, embeddings=self.embeddings, extensions=self.extensions, changes=self.changes)

    def for_lines(self, change: Callable[[HeadRecord], dict[str, Any]]) -> ModelRecord:
        """This record, with what `change` returns for it and for each of its lines."""
        lines = {name: line.model_copy(update=change(line)) for name, line in self.lines.items()}
        return self.model_copy(update={**change(self), "lines": lines})

    def line_for(self, task: str | None, folder: Path) -> str | None:
        """The line that answers `task`, a line's name or that of its corpus; None where there is a single head.

        None as `task` chooses the only labelled line. Raises RecipeError, which names the tasks, where none or several
        match.
        """
        if not self.lines:
            return None
        answering = {name: line for name, line in self.lines.items() if line.family is not None} or self.lines
        named = task in self.lines
        chosen = [
            name
            for name, line in (self.lines if named else answering).items()
            if task is None or name == task or (not named and line.corpus == (task,))
        ]
        if len(chosen) != 1:
            known = ", ".join(answering)
            reason = "say which" if task is None else f"{task!r} is none or several of them"
            raise RecipeError(f"{folder}: a model of several tasks ({known}); {reason}, with --task")
        return chosen[0]

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
    lines: Mapping[str, OpenedModel] = field(default_factory=dict)
    """Line → the same weights below its head; empty where the network has a single one."""
    features: tuple[FeatureTokenizer, ...] = ()
    """Tokenizers of the networks that it reads."""

    def line(self, name: str | None) -> OpenedModel:
        """The model of line `name`; the model itself for None."""
        return self if name is None else self.lines[name]


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


def open_model(folder: Path, accelerator: str, task: str | None = None) -> OpenedModel:
    """Load the model that a stage saved in `folder`; of a model with several heads, the one that answers `task`.

    Raises RecipeError when the folder is not one, its weights do not match, or it has several tasks and none is chosen.
    """
    opened = open_lines(folder, accelerator)
    return opened.line(opened.record.line_for(task, folder))


def open_lines(folder: Path, accelerator: str) -> OpenedModel:
    """Load the model that a stage saved in `folder`, with all of its heads on one backbone.

    Raises RecipeError when the folder is not one, or its weights do not match.
    """
    config = open_config(folder)
    record = ModelRecord.read(config)
    if record is None:
        raise RecipeError(
            f"{folder}: its config.json has no key 'cursus' with the head; use the folder of a stage's result"
        )
    record = record.for_lines(lambda one: _located(one, folder))
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
    tokenizer, features = open_tokenizer(folder), open_feature_tokenizers(folder, config)
    lines = {
        name: OpenedModel(record.of_line(name), line_network(network, name), tokenizer, features=features)
        for name in record.lines
    }
    return OpenedModel(record, network, tokenizer, lines, features)


def open_feature_tokenizers(folder: Path, config: PretrainedConfig) -> tuple[FeatureTokenizer, ...]:
    """Load the tokenizers of the networks that the model in `folder` reads. RecipeError where one is missing."""
    return tuple(
        FeatureTokenizer(open_tokenizer(folder / FEATURES / str(number)), settings["length"])
        for number, settings in enumerate(feature_settings(config))
    )


def line_network(network: PreTrainedModel, line: str) -> PreTrainedModel:
    """The network that computes `line`: the backbone with the line's head, or all of `network` with its only one."""
    from pipelines.networks.several_heads import SeveralHeads

    return network.head(line) if isinstance(network, SeveralHeads) else network


def build_network(record: ModelRecord, config: PretrainedConfig) -> PreTrainedModel:
    """Build the network of `record` over a backbone of `config`, with random weights; the record is written into
    `config`."""
    record.write(config)
    if record.several_heads:
        from pipelines.networks.several_heads import SeveralHeads

        heads = {name: line.head.build(deepcopy(config), line.task) for name, line in record.lines.items()}
        network: PreTrainedModel = SeveralHeads(config, heads)
    else:
        network = record.head.build(config, record.task)
    if record.embeddings:
        from pipelines.networks.channel_embeddings import attach

        attach(cast("PreTrainedModel", network.base_model), record.embeddings)
    for extension in record.extensions:
        extension.add_modules(network)
    for change in record.changes:
        network = change.compression.rebuild(network, change.modules)
    return network


def count_weights(network: Module) -> int:
    """Number of weights of a network. Weights that a compression has packed are the buffers called `weight`."""
    packed = sum(buffer.numel() for name, buffer in network.named_buffers() if name.rpartition(".")[2] == "weight")
    return packed + sum(parameter.numel() for parameter in network.parameters())


def choose_attention(config: PretrainedConfig, accelerator: str) -> None:
    """Set eager attention on a CPU, where it is faster than the fused kernel at these lengths, especially in the
    backward pass; elsewhere let transformers choose."""
    config._attn_implementation = "eager" if accelerator == "cpu" else None
