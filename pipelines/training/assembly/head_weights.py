"""Which heads of a stage continue, and which are new.

A head continues from the only one of the start that is of its kind and over its labels; any other head is new. A
checkpoint from elsewhere has no record of its head: a head is new there if the checkpoint has none of its weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pipelines.models.opening import HeadRecord, ModelRecord, line_network

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


def heads_of(record: ModelRecord) -> dict[str, HeadRecord]:
    """Prefix of the names of a head's weights → the head; "" where a network has one."""
    if not record.several_heads:
        return {"": record}
    return {_prefix(name): line for name, line in record.lines.items()}


def _prefix(line: str) -> str:
    return f"heads.{line}_head."


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


def heads_without(
    weights: Mapping[str, Tensor], expected: Iterable[str], record: ModelRecord, backbone: str
) -> tuple[str, ...]:
    """Prefixes of the heads of `record` of which `weights` holds nothing.

    `expected` are the names of the network's weights, `backbone` is the prefix of those below the heads.
    """
    own = {name for name in expected if not name.startswith(backbone)}
    of_head = {prefix: {name for name in own if name.startswith(prefix)} for prefix in heads_of(record)}
    return tuple(prefix for prefix, names in of_head.items() if names and not names & weights.keys())


def begin_heads(network: PreTrainedModel, record: ModelRecord, new: Iterable[str]) -> None:
    """Let the heads with the prefixes `new` begin: the weights of the backbone are in place."""
    lines = {_prefix(name): name for name in record.lines} if record.several_heads else {}
    for prefix in new:
        one = line_network(network, lines[prefix]) if prefix else network
        heads_of(record)[prefix].head.begin(one)
