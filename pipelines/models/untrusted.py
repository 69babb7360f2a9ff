"""Checks of untrusted model folders before any file in them is opened.

Only safetensors and JSON are read, which cannot contain code. A pickle executes code when it is read, and so does a
module that a configuration refers to. Such a folder is refused as a whole, even if it also contains safetensors,
because the next tool might read what this one does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from pipelines.errors import RecipeError

WEIGHTS = "model.safetensors"
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".dill")
"""File extensions of pickles."""
CODE_KEYS = ("auto_map", "custom_pipelines", "custom_generate")
"""Configuration keys that make transformers load code from the folder."""
MAX_HEADER_BYTES = 100_000_000
"""Maximum size of a safetensors header, defined by the format."""
MAX_JSON_BYTES = 512 * 2**20
"""Maximum size of a JSON file; the largest vocabularies take a tenth of it."""


def refuse_unsafe(folder: Path) -> None:
    """Raise RecipeError, with the file and the reason, for a folder with code, a pickle, or a link that leaves it."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() and not _is_inside(path, folder):
            raise RecipeError(
                f"{path}: this link leaves {folder} for {path.resolve()}; to use the file, copy it into the folder"
            )
        if path.suffix.lower() in PICKLES:
            raise RecipeError(
                f"{path}: a pickle, which can execute code when it is read; only safetensors are read. Convert the "
                "model with "
                f"save_pretrained first, and remove {name} from the folder"
            )
        if path.suffix == ".json" and path.is_file():
            _refuse_json(path, folder)


def safetensors_header(path: Path) -> dict[str, Any]:
    """Read the header of a safetensors file: dtype, shape and offsets of each tensor.

    ValueError for a truncated file, or a header longer than the file or than the format allows.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(MAX_HEADER_BYTES, size - 8):
            raise ValueError(f"its header claims {length:,} bytes, the file has {size:,}")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    return header


def _refuse_json(path: Path, folder: Path) -> None:
    if path.stat().st_size > MAX_JSON_BYTES:
        raise RecipeError(f"{path}: {path.stat().st_size:,} bytes of JSON; no configuration or tokenizer is that large")
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{path}: not readable as JSON ({error})") from None
    if not isinstance(value, dict):
        return
    for key in CODE_KEYS:
        if value.get(key):
            raise RecipeError(
                f"{path}: {key!r} refers to code that came with the model ({_shown(value[key])}); such code is never "
                "executed. "
                "Use an architecture that transformers supports, and remove the key"
            )
    if path.name.endswith(".index.json"):
        for shard in set(_shards(value)):
            shard_path = PurePosixPath(shard)
            if shard_path.is_absolute() or ".." in shard_path.parts or "\\" in shard:
                raise RecipeError(f"{path}: refers to the shard {shard!r}, which is not in {folder}")
            if shard_path.suffix != ".safetensors":
                raise RecipeError(f"{path}: refers to the shard {shard!r}; only safetensors are read")


def _shards(index: dict[str, Any]) -> Iterator[str]:
    weight_map = index.get("weight_map")
    if isinstance(weight_map, dict):
        yield from map(str, weight_map.values())


def _is_inside(link: Path, folder: Path) -> bool:
    """Whether a link's target is in its folder or, in Hugging Face's cache, among the files of the same model."""
    home = folder.resolve()
    if home.parent.name == "snapshots":
        home = home.parents[1]
    return link.resolve().is_relative_to(home)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"
