"""Model folders that others made, looked through before anything in them is opened.

What is opened of them is safetensors and JSON, which hold numbers and words. A pickle runs code when it is read, and so does
a module that a configuration asks for; such a folder is refused whole, also where safetensors lie beside the pickle: what is
not read today would be read by the next tool that the folder is handed to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from pipelines.errors import RecipeError

WEIGHTS = "model.safetensors"
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".dill")
"""Endings under which pickles travel."""
CODE_KEYS = ("auto_map", "custom_pipelines", "custom_generate")
"""Keys of a configuration by which transformers looks for code in the folder."""
LONGEST_HEADER = 100_000_000
"""Bytes of a safetensors header; the format's own limit."""
LONGEST_JSON = 512 * 2**20
"""Bytes of a JSON file; the largest vocabularies take a tenth of it."""


def refuse_harm(folder: Path) -> None:
    """Raise RecipeError, with the file and the reason, for a folder that holds code, a pickle, or a way out of itself."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() and not _stays(path, folder):
            raise RecipeError(
                f"{path}: leads out of {folder}, to {path.resolve()}; copy the file into the folder if it is to be read"
            )
        if path.suffix.lower() in PICKLES:
            raise RecipeError(
                f"{path}: a pickle, which can run code when it is read; only safetensors are read. Convert the model with "
                f"save_pretrained first, and take {name} out of the folder"
            )
        if path.suffix == ".json" and path.is_file():
            _refuse_json(path, folder)


def safetensors_header(path: Path) -> dict[str, Any]:
    """The header of a safetensors file: of each tensor its dtype, shape and place.

    Raises ValueError for a file that is cut, or whose header is longer than the file or than the format allows.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(LONGEST_HEADER, size - 8):
            raise ValueError(f"its header claims {length:,} bytes, the file has {size:,}")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    return header


def _refuse_json(path: Path, folder: Path) -> None:
    if path.stat().st_size > LONGEST_JSON:
        raise RecipeError(f"{path}: {path.stat().st_size:,} bytes of JSON; no configuration or tokenizer is that large")
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{path}: is not JSON ({error})") from None
    if not isinstance(value, dict):
        return
    for key in CODE_KEYS:
        if value.get(key):
            raise RecipeError(
                f"{path}: {key!r} asks for code that came with the model ({_shown(value[key])}); such code is never run. "
                "Use a model of an architecture that transformers has, and take the key out"
            )
    if path.name.endswith(".index.json"):
        for shard in set(_shards(value)):
            named = PurePosixPath(shard)
            if named.is_absolute() or ".." in named.parts or "\\" in shard:
                raise RecipeError(f"{path}: names the shard {shard!r}, which is not in {folder}")
            if named.suffix != ".safetensors":
                raise RecipeError(f"{path}: names the shard {shard!r}; only safetensors are read")


def _shards(index: dict[str, Any]) -> Iterator[str]:
    placed = index.get("weight_map")
    if isinstance(placed, dict):
        yield from map(str, placed.values())


def _stays(link: Path, folder: Path) -> bool:
    """Whether a link ends in its folder, or, in Hugging Face's cache, among the files of the same model."""
    home = folder.resolve()
    if home.parent.name == "snapshots":
        home = home.parents[1]
    return link.resolve().is_relative_to(home)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"
