"""The network a stage starts from, with every weight accounted for.

Silent loading with `strict=False` hides missing weights. Here the backbone's weights must match exactly; the head's
must match too where the head stays the same, and are all new where it changes; a third-party checkpoint may lack or
exceed only the weights that the recipe names.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.models.features import FEATURES
from pipelines.models.opening import (
    HeadRecord,
    LineRecord,
    ModelRecord,
    build_network,
    choose_attention,
    open_config,
    open_lines,
    open_tokenizer,
)
from pipelines.models.weights import read_weights
from pipelines.networks.channel_embeddings import MODULE
from pipelines.parts.architectures import Architecture
from pipelines.parts.embeddings import Embedding
from pipelines.parts.strategies import Strategy
from pipelines.recipe.lines import line_views
from pipelines.recipe.starts import Checkpoint, Untrained
from pipelines.task_families import Task
from pipelines.training.assembly.features import load_features, settings_of
from pipelines.training.assembly.finished import refuse_finished
from pipelines.training.assembly.head_weights import (
    answers_alike,
    begin_heads,
    continued_weights,
    heads_of,
    heads_without,
    other_head,
)
from pipelines.training.assembly.new_words import MULTIPLE, extend_vocabulary, pieces_of_new_words

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.parts.compressions import Calibration
    from pipelines.recipe.schema import Stage


def assemble(
    stage: Stage,
    start: Path | None,
    tokenizer: PreTrainedTokenizerFast,
    tasks: Mapping[str, Task | None],
    accelerator: str,
    features: Sequence[Path] = (),
    calibration: Calibration | None = None,
    head_start: Path | None = None,
) -> PreTrainedModel:
    """Build the network of `stage` in training mode, with the weights in `start` or random ones; with those of its head
    in `head_start`, if that is given.

    `tasks` holds the task of every line, None for one on plain text. The network reads those in the folders `features`,
    one for each of the stage's. `calibration` is what the compressions see of the corpus; None where none needs it.
    Random weights come from torch's global generator: seed it first. Raises RecipeError when weights do not match.
    """
    config = _config(stage, start, tokenizer)
    read = [open_lines(folder, accelerator) for folder in features]
    if read:
        setattr(config, FEATURES, [settings_of(one, opened) for one, opened in zip(stage.features, read, strict=True)])
    choose_attention(config, accelerator)
    before = ModelRecord.read(config)
    record = _record(stage, tasks, before.extensions if before else ())
    record = record.model_copy(update={"embeddings": _embeddings(stage, before)})
    if before is not None:
        refuse_finished(stage, before, start)
        record = record.model_copy(update={"changes": before.changes})
    network = build_network(record, config)
    new = tuple(heads_of(record))
    if start is not None and not isinstance(stage.start, Untrained):
        pieces = pieces_of_new_words(open_tokenizer(start), tokenizer) if stage.vocabulary is not None else {}
        new = _take_weights(network, start, stage, before, record, pieces, head_start)
    if read:
        load_features(network, read)
    begin_heads(network, record, new)
    added = tuple(one for one in stage.strategy if one.extends and one not in record.extensions)
    for strategy in added:
        strategy.add_modules(network)
    record = record.model_copy(update={"extensions": (*record.extensions, *added)})
    record.write(network.config)
    for compression in stage.compression:
        if accelerator == "gpu" and compression.needs_calibration:
            network.to("cuda")  # type: ignore[arg-type]  # transformers wraps `to` and loses its signature
        network, change = compression.shrink(network, calibration)
        network.to("cpu")  # type: ignore[arg-type]
        record = record.changed(compression, change)
        record.write(network.config)
    # loading as in from_pretrained leaves eval mode, which would train without dropout
    network.train()
    return network


def _record(stage: Stage, tasks: Mapping[str, Task | None], extensions: tuple[Strategy, ...]) -> ModelRecord:
    lines = {}
    for name, view in line_views(stage).items():
        assert view.head is not None
        task = tasks[name]
        lines[name] = LineRecord(
            head=view.head,
            family=task.family if task else None,
            labels=task.labels if task else (),
            annotations=view.annotations,
            corpus=view.corpus,
            attention=view.attention,
            knowledge=view.knowledge,
        )
    first = next(iter(lines.values()))
    shared = {key: getattr(first, key) for key in HeadRecord.model_fields}
    record = ModelRecord(**shared, extensions=extensions, lines=lines)
    if stage.lines and (record.several_heads or any(tasks.values())):
        return record
    return record.model_copy(update={"lines": {}})


def _embeddings(stage: Stage, before: ModelRecord | None) -> tuple[Embedding, ...]:
    if stage.backbone is not None:
        return stage.backbone.added_embeddings
    return before.embeddings if before is not None else ()


def _new_tables(before: ModelRecord | None, record: ModelRecord) -> list[str]:
    """Patterns of the names of the tables that the start of a stage does not have."""
    old = () if before is None else tuple(one.name for one in before.embeddings)
    return [f"*.{MODULE}.{one.name}.*" for one in record.embeddings if one.name not in old]


def backbone_prefix(network: PreTrainedModel) -> str:
    """Prefix of the names of the backbone's weights; empty where the whole network is the backbone."""
    return "" if network.base_model is network else network.base_model_prefix + "."


def set_dropout(network: PreTrainedModel, rate: float | None) -> None:
    """Set the rate of every dropout module of `network`, and of layers that call the function with a rate of their own;
    None leaves the rates of the configuration."""
    from torch import nn

    if rate is not None:
        for module in network.modules():
            if isinstance(module, nn.Dropout):
                module.p = rate
            elif isinstance(getattr(module, "dropout", None), float) and not isinstance(module, nn.RNNBase):
                module.dropout = rate  # type: ignore[assignment]  # torch types attributes as tensors or modules


def _config(stage: Stage, start: Path | None, tokenizer: PreTrainedTokenizerFast) -> PretrainedConfig:
    if start is None:
        assert stage.backbone is not None
        return stage.backbone.config(tokenizer, stage.budget.length)
    config = open_config(start)
    positions = _positions(stage)
    if stage.budget.length > positions:
        raise RecipeError(
            f"budget.length: {stage.budget.length} tokens do not fit the {positions} positions of {start}"
        )
    if stage.vocabulary is not None and len(tokenizer) > config.vocab_size:
        config.vocab_size = -(-len(tokenizer) // MULTIPLE) * MULTIPLE
    if len(tokenizer) > config.vocab_size:
        raise RecipeError(
            f"{start}: the tokenizer has {len(tokenizer)} tokens, but the network's vocabulary only "
            f"{config.vocab_size}; use a folder whose tokenizer and network belong together"
        )
    return config


def _positions(stage: Stage) -> int:
    """Number of tokens in the longest row that the stage's backbone reads."""
    if stage.backbone is not None:
        return stage.backbone.max_length or stage.budget.length
    return stage.budget.length


def _take_weights(
    network: PreTrainedModel,
    folder: Path,
    stage: Stage,
    before: ModelRecord | None,
    record: ModelRecord,
    pieces: Mapping[int, list[int]],
    head_start: Path | None,
) -> tuple[str, ...]:
    """Load the weights in `folder`; returns the prefixes of the heads that are new (`heads_of`)."""
    weights = read_weights(folder)
    prefix = backbone_prefix(network)
    expected = network.state_dict()
    tied = set(getattr(network, "all_tied_weights_keys", None) or {})
    new: tuple[str, ...] = ()
    if isinstance(stage.start, Checkpoint):
        allowed_missing: Iterable[str] = stage.start.missing
        allowed_unused: Iterable[str] = stage.start.unused
        if not any(key.startswith(prefix) for key in weights):
            weights = {prefix + key: value for key, value in weights.items()}  # a bare backbone
        new = heads_without(weights, expected.keys() - tied, record, prefix)
    elif head_start is not None:
        own = {key for key in expected if not key.startswith(prefix)} - tied
        weights = {key: value for key, value in weights.items() if key.startswith(prefix)}
        weights |= other_head(head_start, folder, record, own if prefix else set())
        allowed_missing = allowed_unused = _poolers(network)
    elif record.several_heads or (before is not None and before.several_heads):
        weights, new = continued_weights(weights, before, record, prefix)
        allowed_missing = [key for key in expected if not key.startswith(prefix) and key.startswith(new)]
        allowed_missing += _poolers(network)
        allowed_unused = _poolers(network)
    elif before is not None and answers_alike(before, record):
        allowed_missing = allowed_unused = ()
    else:
        # a new head starts from random weights, even where the old one had weights of the same name
        new = tuple(heads_of(record))
        weights = {key: value for key, value in weights.items() if key.startswith(prefix)}
        allowed_missing = [*(key for key in expected if not key.startswith(prefix)), *_poolers(network)]
        allowed_unused = _poolers(network)

    allowed_missing = [*allowed_missing, *_new_tables(before, record)]
    if pieces:
        weights = extend_vocabulary(weights, network, pieces)
    missing = [
        key for key in expected if key not in weights and key not in tied and not _named(key, prefix, allowed_missing)
    ]
    unused = [key for key in weights if key not in expected and not _named(key, prefix, allowed_unused)]
    shapes = [
        f"{key} is {tuple(weights[key].shape)} in the file, {tuple(value.shape)} in the network"
        for key, value in expected.items()
        if key in weights and weights[key].shape != value.shape
    ]
    problems = [
        *([f"missing in the file: {_few(missing)}"] if missing else []),
        *([f"unknown to the network: {_few(unused)}"] if unused else []),
        *([f"of another shape: {_few(shapes)}"] if shapes else []),
    ]
    if problems:
        raise RecipeError(
            f"{folder}: its weights do not match this stage's network; {'; '.join(problems)}. Name the weights that "
            "may differ in `start: {checkpoint: …, missing: [patterns], unused: [patterns]}`"
        )
    network.load_state_dict({key: value for key, value in weights.items() if key in expected}, strict=False)
    network.tie_weights()
    return new


def _poolers(network: PreTrainedModel) -> list[str]:
    """Patterns of the names of the backbone's weights that only some heads have."""
    architecture = Architecture.of(network.config)
    return [f"{module}.*" for module in architecture.pooler] if architecture is not None else []


def _named(key: str, prefix: str, patterns: Iterable[str]) -> bool:
    bare = key.removeprefix(prefix)
    return any(key == p or fnmatch.fnmatchcase(key, p) or fnmatch.fnmatchcase(bare, p) for p in patterns)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
