"""The files of a saved model's folder: their names, and its JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipelines.errors import DataError

ONNX = "model.onnx"
SAFETENSORS = "model.safetensors"
CONFIGURATION = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
"""Files of a served folder besides its weights; the last one only if the tokenizer has it."""


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`. Raises DataError naming the file when it is missing or not an object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: missing; give the folder of a finished stage") from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds {type(value).__name__}, expected an object")
    return value
