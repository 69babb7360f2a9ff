"""Which heads of a stage continue, and which are new.

A head continues from the only one of the start that is of its kind, on its family of tasks and over its labels; any
other head is new. A checkpoint from elsewhere has no record of its head: a head is new there if the checkpoint has none
of its weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.models.opening import HeadRecord, ModelRecord, line_network, open_config, open_tokenizer
from pipelines.models.weights import read_weights
from pipelines.vocabulary import OVER_VOCABULARY

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
        alike = [old for old, one in old_heads.items() if answers_alike(one, head)]
        if len(alike) != 1:
            new.append(prefix)
            continue
        for name, value in weights.items():
            if name.startswith(alike[0]) and not name.startswith(backbone):
                result[prefix + name.removeprefix(alike[0])] = value
    return result, tuple(new)


def answers_alike(one: HeadRecord, other: HeadRecord) -> bool:
    """Whether two heads are of one kind, on one family of tasks, over the same labels."""
    families = [None if record.family is None else record.family.name for record in (one, other)]
    return other.head.continues(one.head) and one.labels == other.labels and families[0] == families[1]


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


def other_head(folder: Path, backbone: Path, record: ModelRecord, names: Iterable[str]) -> dict[str, Tensor]:
    """The weights `names` of the head of `record`, from the model in `folder`, which has that head and its labels.

    Raises RecipeError where it has none or several such heads, where none of its weights are of the head alone, and
    where a head over the vocabulary has another one than the model in `backbone`.
    """
    before = ModelRecord.read(open_config(folder))
    heads = {} if before is None else heads_of(before)
    alike = [old for old, one in heads.items() if (one.head.name, one.labels) == (record.head.name, record.labels)]
    if len(alike) != 1:
        labels = f" over {', '.join(record.labels)}" if record.labels else ""
        raise RecipeError(
            f"{folder}: {len(alike)} of its heads are {record.head.name}{labels}, and this stage continues one; name a "
            "stage with that head over these labels in `start: {backbone: …, head: …}`"
        )
    if not (names := sorted(names)):
        raise RecipeError(
            f"{folder}: {record.head.name} has no weights beside those of its backbone; write start: <stage>"
        )
    if not record.head.reads and record.head.provides & OVER_VOCABULARY:
        own, other = open_tokenizer(backbone).get_vocab(), open_tokenizer(folder).get_vocab()
        if own != other:
            raise RecipeError(
                f"{folder}: its head scores {len(other):,} tokens, and the backbone in {backbone} reads {len(own):,}, "
                f"of which {len(own.items() & other.items()):,} are the same word with the same id; let both start "
                "from one stage"
            )
    weights, prefix = read_weights(folder), alike[0]
    return {name: weights[prefix + name] for name in names if prefix + name in weights}
