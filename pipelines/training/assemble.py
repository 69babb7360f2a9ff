"""The network and tokenizer a stage starts from, every weight accounted for.

Loading with `strict=False` in silence is how people lose weeks. Here the body's weights match exactly; the head's match
too where the head stays the same, and are new, all of them, where it changes; a foreign checkpoint may lack or exceed
only what the recipe names.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pipelines.errors import RecipeError
from pipelines.recipe.schema import Checkpoint, Stage, Untrained

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

HEAD_RECORD = "cursus_head"
"""Configuration key that names the head a folder was saved with."""


def open_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer saved in `folder`. Raises RecipeError when there is none."""
    from transformers import AutoTokenizer

    try:
        tokenizer = cast("PreTrainedTokenizerFast", AutoTokenizer.from_pretrained(folder))
    except (OSError, ValueError) as error:
        raise RecipeError(f"{folder}: no tokenizer that transformers can open ({error})") from None
    return tokenizer


def assemble(
    stage: Stage,
    start: Path | None,
    tokenizer: PreTrainedTokenizerFast,
    labels: Sequence[str],
    accelerator: str,
) -> PreTrainedModel:
    """The network of `stage` in training mode, from the weights in `start` or random ones.

    Random weights come from torch's global generator: seed it first. Raises RecipeError when weights do not match.
    """
    assert stage.head is not None
    fresh = start is None or isinstance(stage.start, Untrained)
    config = _config(stage, start, tokenizer)
    # plain matrix products beat the fused kernel on a CPU at these lengths, forward and far more so backward
    config._attn_implementation = "eager" if accelerator == "cpu" else "sdpa"
    same_head = getattr(config, HEAD_RECORD, None) == stage.head.name
    setattr(config, HEAD_RECORD, stage.head.name)
    network = stage.head.build(config, labels)
    if not fresh:
        assert start is not None
        _take_weights(network, start, stage, same_head)
    for compression in stage.compression:
        network = compression.shrink(network)
    # from_pretrained-like loading leaves eval mode, which would train without dropout
    network.train()
    return network


def open_for_inference(stage: Stage, folder: Path, labels: Sequence[str], accelerator: str) -> PreTrainedModel:
    """A frozen companion: the network of `stage`'s head with the weights in `folder`, in eval mode."""
    assert stage.head is not None
    config = _config(stage, folder, None)
    config._attn_implementation = "eager" if accelerator == "cpu" else "sdpa"
    network = stage.head.build(config, labels)
    _take_weights(network, folder, stage, same_head=True)
    network.requires_grad_(False)
    network.eval()
    return network


def set_dropout(network: PreTrainedModel, rate: float | None) -> None:
    """Let every dropout of `network` drop `rate` of its inputs; None leaves what the configuration says."""
    from torch import nn

    if rate is not None:
        for module in network.modules():
            if isinstance(module, nn.Dropout):
                module.p = rate


def _config(stage: Stage, start: Path | None, tokenizer: PreTrainedTokenizerFast | None) -> PretrainedConfig:
    from transformers import AutoConfig

    if start is None:
        assert stage.backbone is not None and tokenizer is not None
        return stage.backbone.config(tokenizer, stage.budget.length)
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(start)
    except (OSError, ValueError) as error:
        raise RecipeError(f"{start}: no configuration that transformers can open ({error})") from None
    positions = getattr(config, "max_position_embeddings", stage.budget.length)
    if stage.budget.length > positions:
        raise RecipeError(
            f"budget.length: {stage.budget.length} tokens do not fit the {positions} positions of {start}"
        )
    if tokenizer is not None and len(tokenizer) > config.vocab_size:
        raise RecipeError(
            f"{start}: the tokenizer has {len(tokenizer)} tokens, the network only {config.vocab_size}; they do not "
            "belong together"
        )
    return config


def _take_weights(network: PreTrainedModel, folder: Path, stage: Stage, same_head: bool) -> None:
    weights = _read_weights(folder)
    prefix = network.base_model_prefix + "."
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
        allowed_missing = [key for key in wanted if not key.startswith(prefix)]
        allowed_unused = [key for key in weights if not key.startswith(prefix)]

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


def _read_weights(folder: Path) -> dict[str, Tensor]:
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


def _named(key: str, prefix: str, patterns: Iterable[str]) -> bool:
    bare = key.removeprefix(prefix)
    return any(key == p or fnmatch.fnmatchcase(key, p) or fnmatch.fnmatchcase(bare, p) for p in patterns)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
