"""What a network reads: rows of token ids, and what goes with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

ModelInputs: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]"
"""A batch: input_ids [B, L], attention_mask [B, L], and token_type_ids [B, L] where they are known."""


def select_inputs(names: Sequence[str], rows: ModelInputs) -> dict[str, NDArray[np.int64]]:
    """The arrays of `rows` that are called `names`; a graph that asks of which text a token is hears of the first by default."""
    ids, mask, types = rows
    known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids) if types is None else types}
    return {name: known[name] for name in names}
