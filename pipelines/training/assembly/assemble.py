"""The network and tokenizer a stage starts from, every weight accounted for.

Loading with `strict=False` in silence is how people lose weeks. Here the body's weights match exactly; the head's match
too where the head stays the same, and are new, all of them, where it changes; a foreign checkpoint may lack or exceed
only what the recipe names.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.models.opening import Record, choose_attention, open_config, open_tokenizer, put_together, read_weights
from pipelines.parts.strategies import Strategy
from pipelines.recipe.starts import Checkpoint, Untrained
from pipelines.task_families import Task
from pipelines.training.assembly.new_words import MULTIPLE, grown, pieces_of_new_words

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.recipe.schema import Stage


def assemble(
    stage: Stage,
    start: Path | None,
    tokenizer: PreTrainedTokenizerFast,
    task: Task | None,
    accelerator: str,
) -> PreTrainedModel:
    """The network of `stage` in training mode, from the weights in `start` or random ones.

    Random weights come from torch's global generator: seed it first. Raises RecipeError when weights do not match.
    """
    assert stage.head is not None
    config = _config(stage, start, tokenizer)
    choose_attention(config, accelerator)
    before = Record.read(config)
    record = Record(
        head=stage.head,
        extensions=before.extensions if before else (),
        family=task.family if task else None,
        labels=task.labels if task else (),
    )
    network = put_together(record, config)
    if start is not None and not isinstance(stage.start, Untrained):
        same_head = before is not None and (before.head.name, before.labels) == (record.head.name, record.labels)
        pieces = pieces_of_new_words(open_tokenizer(start), tokenizer) if stage.vocabulary is not None else {}
        _take_weights(network, start, stage, same_head, pieces)
    added = tuple(one for one in stage.strategy if _extends(one) and one not in record.extensions)
    for strategy in added:
        strategy.extend(network)
    record.model_copy(update={"extensions": (*record.extensions, *added)}).write(network.config)
    for compression in stage.compression:
        network = compression.shrink(network)
    # from_pretrained-like loading leaves eval mode, which would train without dropout
    network.train()
    return network


def _extends(strategy: Strategy) -> bool:
    return type(strategy).extend is not Strategy.extend


def body_prefix(network: PreTrainedModel) -> str:
    """What the names of the body's weights begin with; nothing where the whole network is the body."""
    return "" if network.base_model is network else network.base_model_prefix + "."


def set_dropout(network: PreTrainedModel, rate: float | None) -> None:
    """Let every dropout of `network` drop `rate` of its inputs; None leaves what the configuration says."""
    from torch import nn

    if rate is not None:
        for module in network.modules():
            if isinstance(module, nn.Dropout):
                module.p = rate


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
            f"{start}: the tokenizer has {len(tokenizer)} tokens, the network only {config.vocab_size}; they do not "
            "belong together"
        )
    return config


def _positions(stage: Stage) -> int:
    """Tokens of the longest row the stage's body reads."""
    if stage.backbone is not None:
        return stage.backbone.longest or stage.budget.length
    return stage.budget.length


def _take_weights(
    network: PreTrainedModel, folder: Path, stage: Stage, same_head: bool, pieces: Mapping[int, list[int]]
) -> None:
    weights = read_weights(folder)
    prefix = body_prefix(network)
    wanted = network.state_dict()
    tied = set(getattr(network, "all_tied_weights_keys", None) or {})
    if isinstance(stage.start, Checkpoint):
        allowed_missing: Iterable[str] = stage.start.missing
        allowed_unused: Iterable[str] = stage.start.unused
        if not any(key.startswith(prefix) for key in weights):
            weights = {prefix + key: value for key, value in weights.items()}  # a bare body
    elif same_head:
        allowed_missing = allowed_unused = ()
    else:
        # a new head learns from nothing, whatever weights of the same name the old one had
        weights = {key: value for key, value in weights.items() if key.startswith(prefix)}
        allowed_missing = [key for key in wanted if not key.startswith(prefix)]
        allowed_unused = ()

    if pieces:
        weights = grown(weights, network, pieces)
    missing = [
        key for key in wanted if key not in weights and key not in tied and not _named(key, prefix, allowed_missing)
    ]
    unused = [key for key in weights if key not in wanted and not _named(key, prefix, allowed_unused)]
    shapes = [
        f"{key} is {tuple(weights[key].shape)} there, {tuple(value.shape)} here"
        for key, value in wanted.items()
        if key in weights and weights[key].shape != value.shape
    ]
    problems = [
        *([f"missing there: {_few(missing)}"] if missing else []),
        *([f"unknown here: {_few(unused)}"] if unused else []),
        *([f"of another shape: {_few(shapes)}"] if shapes else []),
    ]
    if problems:
        raise RecipeError(
            f"{folder}: its weights do not match this stage's network; {'; '.join(problems)}. Name what may differ in "
            "`start: {checkpoint: …, missing: [patterns], unused: [patterns]}`"
        )
    network.load_state_dict({key: value for key, value in weights.items() if key in wanted}, strict=False)
    network.tie_weights()


def _named(key: str, prefix: str, patterns: Iterable[str]) -> bool:
    bare = key.removeprefix(prefix)
    return any(key == p or fnmatch.fnmatchcase(key, p) or fnmatch.fnmatchcase(bare, p) for p in patterns)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
