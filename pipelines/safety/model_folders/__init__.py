"""Checks of a model folder from outside, before any library opens a file of it.

    check_model_folder(Path("theirs"))      # UnsafeFolderError: theirs/config.json: num_attention_heads is 0; …

    files             kinds of files, links, pickles and archives by their first bytes
    json_files        size, nesting, keys that refer to code
    tensor_files      headers of safetensors against their files
    configuration     dimensions: positive, divisible, and no larger than the weights
    tokenizer_files   vocabularies, ids and lengths;   expressions: regular expressions of bounded effort

Only headers, JSON and the first bytes of files are read, so what a check takes depends on the folder's files and not on
what they claim.
"""

from __future__ import annotations

from pathlib import Path

from pipelines.safety.model_folders.configuration import check_configuration
from pipelines.safety.model_folders.files import check_kind, files_of
from pipelines.safety.model_folders.json_files import check_index, read_checked_json
from pipelines.safety.model_folders.rejection import UnsafeFolderError
from pipelines.safety.model_folders.tensor_files import checked_tensors
from pipelines.safety.model_folders.tokenizer_files import VOCABULARIES, check_vocabulary_file

__all__ = ["UnsafeFolderError", "check_model_folder"]


def check_model_folder(folder: Path) -> None:
    """Raise UnsafeFolderError, one sentence with the file and the reason, for a folder that must not be opened."""
    files = files_of(folder)
    for path in files:
        check_kind(path, folder)
    values = {path: read_checked_json(path) for path in files if path.suffix.lower() == ".json"}
    tensors = {path: checked_tensors(path) for path in files if path.suffix.lower() == ".safetensors"}
    for path, value in values.items():
        if path.name.endswith(".index.json"):
            check_index(path, value, folder)
    for home in sorted({path.parent for path in files}):
        here = [header for path, header in tensors.items() if path.parent == home]
        config = values.get(home / "config.json")
        if config is not None:
            check_configuration(home / "config.json", config, here)
        for path in files:
            if path.parent == home and path.name in VOCABULARIES:
                check_vocabulary_file(path, values.get(path), config or {})
