"""Blocks of params.yaml besides `datasets:`, each read as one model.

read_block(root, "training", TrainingSettings)      # RecipeError: params.yaml:7: training.devices: …
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from pipelines.corpora.settings.dataset import FILE, in_words, plain_values, read_params
from pipelines.errors import RecipeError

M = TypeVar("M", bound=BaseModel)


def read_block(root: Path, name: str, model: type[M]) -> M:
    """The block `name` of `root`/params.yaml as a `model`; its defaults where there is none.

    RecipeError, with line and key, for an invalid one.
    """
    document = read_params(root)
    block = document.get(name)
    if block is not None and not isinstance(block, Mapping):
        line = document.lc.key(name)[0] + 1
        raise RecipeError(f"{FILE}:{line}: {name}: expected a mapping of settings, got {block!r}")
    try:
        return model.model_validate(plain_values(block or {}))
    except ValidationError as invalid:
        error = invalid.errors()[0]
        node, keys, line = block, [name], document.lc.key(name)[0] if block is not None else 0
        for part in (*error["loc"], *([error["ctx"]["key"]] if "key" in error.get("ctx", {}) else [])):
            if not isinstance(node, Mapping) or part not in node:
                break  # an index or a tag that is not written so
            line = node.lc.key(part)[0]  # type: ignore[attr-defined]  # ruamel's mappings have line numbers
            keys.append(str(part))
            node = node[part]
        raise RecipeError(f"{FILE}:{line + 1}: {'.'.join(keys)}: {in_words(error)}") from None
