"""The dimensions in a config.json: numbers that a network can have, and no more of them than its weights hold.

Field names are those of the architectures of transformers and of this project; what a field means is taken from its
name. Nothing is built, so the bound is a lower one: the tables of vocabulary, and one matrix of every layer. What a
network takes exactly is compared with its weights where it is opened (`pipelines.models.oversized`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pipelines.safety.model_folders.json_files import shown
from pipelines.safety.model_folders.rejection import UnsafeFolderError
from pipelines.safety.model_folders.tensor_files import TensorEntry

RECORD = "cursus"
"""Key of this project's record, whose values are components and not dimensions."""
WIDTHS = ("hidden_size", "d_model", "n_embd", "dim", "emb_dim")
INNER_WIDTHS = (
    "intermediate_size", "d_ff", "n_inner", "d_inner", "hidden_dim", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim",
)  # fmt: skip
HEADS = (
    "num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads",
)  # fmt: skip
KEY_HEADS = ("num_key_value_heads",)
HEAD_WIDTHS = ("head_dim", "d_head", "d_kv", "attention_head_size", "qk_head_dim", "qk_nope_head_dim")
"""Fields that make the width of a head independent of the network's."""
LAYERS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "num_decoder_layers",
)  # fmt: skip
SHARED_LAYERS = "num_hidden_groups"
"""Number of distinct layers of a network that computes the same layer more than once."""
POSITIONS = ("max_position_embeddings", "n_positions")
TYPES = {"model_type": str, "architectures": list, "id2label": dict, "label2id": dict, RECORD: dict, "features": list}
MOST: Mapping[tuple[str, ...], int] = {
    WIDTHS: 2**20,
    INNER_WIDTHS: 2**22,
    (*HEADS, *KEY_HEADS): 2**16,
    LAYERS: 2**12,
    POSITIONS: 2**28,
    ("vocab_size",): 2**26,
    ("num_labels",): 2**20,
}
"""Fields, and a maximum that no network in use comes near to."""
MAY_BE_ZERO = {*LAYERS, "num_labels"}
UNRELATED = 2**16
"""Size up to which a field may have nothing to do with the weights."""
_SIZE = re.compile(r"(^|_)(size|dim|buckets|experts|groups|labels)$")


def check_configuration(path: Any, config: dict[str, Any], tensors: Collection[Mapping[str, TensorEntry]]) -> None:
    """Raise UnsafeFolderError for a dimension that no network can have, or that the `tensors` in the folder, by file,
    cannot hold."""
    for key, kind in TYPES.items():
        if config.get(key) is not None and not isinstance(config[key], kind):
            raise UnsafeFolderError(f"{path}: {key} is {shown(config[key])}; expected {_KINDS[kind]}")
    if "quantization_config" in config:
        raise UnsafeFolderError(
            f"{path}: quantization_config: weights that another library has packed are not read; save the model in "
            "float32, float16 or bfloat16"
        )
    entries = [entry for file in tensors for entry in file.values()]
    for scope, values in _scopes("", config):
        _check_numbers(path, scope, values)
        _check_heads(path, scope, values)
        if entries:
            _check_weights(path, scope, values, len(entries), sum(entry.capacity for entry in entries))


def _scopes(name: str, values: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """`values` and the configurations inside, each with the prefix of its fields."""
    yield name, values
    for key, value in values.items():
        inside = f"{name}{key}."
        if isinstance(value, dict):
            yield from _scopes(inside, value)
        elif isinstance(value, list):
            for number, one in enumerate(value):
                if isinstance(one, dict):
                    yield from _scopes(f"{inside}{number}.", one)


def _check_numbers(path: Any, scope: str, values: dict[str, Any]) -> None:
    """Check that each field that counts something is a whole number above 0, and possible."""
    if scope.startswith(f"{RECORD}."):
        return
    for names, most in MOST.items():
        for name in names:
            value = values.get(name)
            least = 0 if name in MAY_BE_ZERO else 1
            for one in value if isinstance(value, list) else [] if value is None else [value]:
                if type(one) is not int or one < least:
                    raise UnsafeFolderError(
                        f"{path}: {scope}{name} is {shown(value)}; expected a whole number of {least} or more"
                    )
                if one > most:
                    raise UnsafeFolderError(
                        f"{path}: {scope}{name} is {one:,}; more than {most:,} is not possible in any network"
                    )


def _check_heads(path: Any, scope: str, values: dict[str, Any]) -> None:
    """Check that heads divide the width, and key heads the heads."""
    width, heads = _first(values, WIDTHS), _first(values, HEADS)
    if heads is None:
        return
    if width is not None and width % heads and not any(values.get(name) for name in HEAD_WIDTHS):
        names = " and ".join(scope + name for name in (*WIDTHS, *HEADS) if name in values)
        raise UnsafeFolderError(f"{path}: {names}: {heads} heads do not divide a width of {width}")
    keys = _first(values, KEY_HEADS)
    if keys is not None and heads % keys:
        raise UnsafeFolderError(f"{path}: {scope}{KEY_HEADS[0]}: {keys} do not divide {heads} heads")


def _check_weights(path: Any, scope: str, values: dict[str, Any], count: int, capacity: int) -> None:
    """Check that the weights in the folder, `count` tensors of up to `capacity` weights, hold the stated dimensions."""
    held = f"the weights in the folder hold {capacity:,} at most"
    for key, value in values.items():
        if _SIZE.search(key) and type(value) is int and value > max(capacity, UNRELATED):
            raise UnsafeFolderError(f"{path}: {scope}{key} is {value:,}, and {held}")
    if scope.startswith(f"{RECORD}."):
        return
    width = _first(values, WIDTHS)
    layers = max((values[name] for name in LAYERS if type(values.get(name)) is int), default=0)
    if layers > count:
        name = next(name for name in LAYERS if values.get(name) == layers)
        raise UnsafeFolderError(f"{path}: {scope}{name} is {layers:,}, and the weights are {count:,} tensors")
    vocabulary, table = values.get("vocab_size"), values.get("embedding_size") or width
    if type(vocabulary) is int and type(table) is int and vocabulary * table > capacity:
        raise UnsafeFolderError(
            f"{path}: {scope}vocab_size is {vocabulary:,}: a table of {vocabulary:,} × {table:,} weights, and {held}"
        )
    inner, distinct = _first(values, INNER_WIDTHS), values.get(SHARED_LAYERS) or layers
    if width is not None and inner is not None and type(distinct) is int and distinct * width * inner > capacity:
        raise UnsafeFolderError(
            f"{path}: {scope or 'its dimensions '}state {distinct:,} layers with a matrix of {width:,} × {inner:,}, "
            f"and {held}"
        )


def _first(values: dict[str, Any], names: Collection[str]) -> int | None:
    """The first of the fields `names` that is a number."""
    return next((values[name] for name in names if type(values.get(name)) is int), None)


_KINDS = {str: "a text", list: "a list", dict: "an object"}
