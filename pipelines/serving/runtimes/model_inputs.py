"""Inputs of a network: rows of token ids, with mask and token types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

ModelInputs: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]"
"""A batch: input_ids [B, L], attention_mask [B, L], and token_type_ids [B, L] or None."""


def select_inputs(names: Sequence[str], rows: ModelInputs) -> dict[str, NDArray[np.int64]]:
    """The arrays of `rows` by the input `names` of a graph; token_type_ids default to 0, the first text."""
    ids, mask, types = rows
    known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids) if types is None else types}
    return {name: known[name] for name in names}
