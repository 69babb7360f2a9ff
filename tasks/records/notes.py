"""Files of notes on claims, which people write: a mapping of names in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipelines.errors import RecipeError


def read_notes(path: Path, holds: str) -> dict[str, Any]:
    """Name → what is written of it in the file `path`; empty where there is none.

    Raises RecipeError, which names the file and what it `holds`, where that is no mapping in YAML.
    """
    if not path.is_file():
        return {}
    try:
        written = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except (YAMLError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: is not YAML: {error}") from None
    if not isinstance(written, dict):
        raise RecipeError(f"{path}: must map {holds}")
    return {str(name): one for name, one in written.items()}
