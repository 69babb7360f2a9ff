"""Weights of heads that continue from the start of a stage, where it or the stage has several heads.

A head continues from the only one of the start that is of its kind and over its labels; any other head is new.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipelines.models.opening import HeadRecord, ModelRecord

if TYPE_CHECKING:
    from torch import Tensor


def heads_of(record: ModelRecord) -> dict[str, HeadRecord]:
    """Prefix of the names of a head's weights → the head; "" where a network has one."""
    if not record.several_heads:
        return {"": record}
    return {f"heads.{name}_head.": line for name, line in record.lines.items()}


def continued_weights(
    weights: Mapping[str, Tensor], before: ModelRecord | None, after: ModelRecord, backbone: str
) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """The weights of the start under the names of the stage's network, and the prefixes of the heads that are new.

    `backbone` is the prefix of the names of the backbone's weights, equal in both.
    """
    result = {name: value for name, value in weights.items() if name.startswith(backbone)}
    old_heads = {} if before is None else heads_of(before)
    new: list[str] = []
    for prefix, head in heads_of(after).items():
        alike = [old for old, one in old_heads.items() if (one.head.name, one.labels) == (head.head.name, head.labels)]
        if len(alike) != 1:
            new.append(prefix)
            continue
        for name, value in weights.items():
            if name.startswith(alike[0]) and not name.startswith(backbone):
                result[prefix + name.removeprefix(alike[0])] = value
    return result, tuple(new)
