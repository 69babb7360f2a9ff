"""JSON of a model folder: how large and how deeply nested it is, and keys that refer to code."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

from pipelines.safety.model_folders.rejection import UnsafeFolderError

CODE_KEYS = ("auto_map", "custom_pipelines", "custom_generate", "trust_remote_code")
"""Keys that make transformers load code from the folder."""
KERNEL_KEYS = ("attn_implementation", "experts_implementation", "kernel_config")
"""Keys whose value may name compiled code on the hub."""
OBJECTS = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "export.json",
)
"""Files that are read as an object."""
MAX_JSON_BYTES = 128 * 2**20
"""Maximum size of a JSON file; the largest tokenizers in use take half of it."""
MAX_CONTAINERS = 4 * 2**20
"""Maximum number of objects and arrays in a JSON file; a vocabulary of a million tokens with its merges has fewer."""
MAX_DEPTH = 64
LONGEST_SHOWN = 80


def read_checked_json(path: Path) -> Any:
    """The value in `path`. UnsafeFolderError for one that is too large, nested too deeply, or refers to code."""
    size = path.stat().st_size
    if size > MAX_JSON_BYTES:
        raise UnsafeFolderError(f"{path}: {size:,} bytes of JSON; no configuration or tokenizer is that large")
    content = path.read_bytes()
    if content.count(b"[") + content.count(b"{") > MAX_CONTAINERS:
        raise UnsafeFolderError(f"{path}: more than {MAX_CONTAINERS:,} objects and arrays; no tokenizer has as many")
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UnsafeFolderError(f"{path}: not readable as JSON ({error})") from None
    if path.name in OBJECTS and not isinstance(value, dict):
        raise UnsafeFolderError(f"{path}: holds {_kind(value)}, expected an object")
    _check_content(path, value)
    return value


def _check_content(path: Path, value: Any) -> None:
    waiting: list[tuple[Any, int]] = [(value, 1)]
    while waiting:
        current, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise UnsafeFolderError(f"{path}: nested more than {MAX_DEPTH} deep; no configuration is")
        if isinstance(current, dict):
            for key in CODE_KEYS:
                _check_code(path, key, current.get(key))
            for key in KERNEL_KEYS:
                if "/" in json.dumps(named := current.get(key) or "") and not isinstance(named, (int, float)):
                    raise UnsafeFolderError(
                        f"{path}: {key!r} names code on the hub ({shown(named)}), which is never executed; remove the "
                        "key"
                    )
            waiting.extend((one, depth + 1) for one in current.values() if isinstance(one, (dict, list)))
        elif isinstance(current, list):
            waiting.extend((one, depth + 1) for one in current if isinstance(one, (dict, list)))


def _check_code(path: Path, key: str, value: Any) -> None:
    """Reject a value that refers to code; a number is the id of a token that is spelled like the key."""
    if value and (value is True or not isinstance(value, (int, float))):
        raise UnsafeFolderError(
            f"{path}: {key!r} refers to code that came with the model ({shown(value)}); such code is never executed. "
            "Use an architecture that transformers supports, and remove the key"
        )


def check_index(path: Path, index: Any, folder: Path) -> None:
    """Reject an index of shards that are missing, outside the folder, or not safetensors."""
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict):
        if not path.name.endswith(".safetensors.index.json"):
            return
        raise UnsafeFolderError(f"{path}: has no object 'weight_map'; save the model again with save_pretrained")
    for shard in sorted({str(shard) for shard in weight_map.values()}):
        shard_path = PurePosixPath(shard)
        if shard_path.is_absolute() or ".." in shard_path.parts or "\\" in shard:
            raise UnsafeFolderError(f"{path}: refers to the shard {shard!r}, which is not in {folder}")
        if shard_path.suffix != ".safetensors":
            raise UnsafeFolderError(f"{path}: refers to the shard {shard!r}; only safetensors are read")
        if not (path.parent / shard).is_file():
            raise UnsafeFolderError(f"{path}: refers to the shard {shard!r}, which is missing")


def shown(value: Any) -> str:
    """`value` as JSON, cut to the length of a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def _kind(value: Any) -> str:
    return {list: "an array", str: "a text", bool: "true or false", type(None): "null"}.get(type(value), "a number")
