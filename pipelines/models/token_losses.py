"""Cross-entropies of a language model at chosen positions, causal or masked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import DataError
from pipelines.task_families.encoding import attention_masks, pad_rows
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.models.opening import OpenedModel

POSITIONS = 512
"""Positions whose cross-entropies are computed at once."""


def token_losses(
    opened: OpenedModel,
    rows: Sequence[NDArray[np.int64]],
    positions: Sequence[NDArray[np.int64]],
    signal: Signal,
    channels: Sequence[Mapping[str, NDArray[Any]]] = (),
) -> list[NDArray[np.float64]]:
    """Cross-entropy in nats of the tokens at `positions` of each row of token ids; all rows form one batch.

    `signal` is NEXT_LOGITS, and position 0 is not allowed; or MASKED_LOGITS, and all positions of a row are masked at
    once: unlike in training, no token is kept or replaced by a random one. `channels` are values [L, *shape] alongside
    the tokens of each row, by name: of the model's annotations.
    """
    import torch
    from torch.nn.functional import cross_entropy

    tokenizer = opened.tokenizer
    # no rounding up: the longest row may have exactly the backbone's maximum number of positions
    ids = pad_rows(rows, int(tokenizer.pad_token_id or 0), multiple=1)
    width = ids.shape[1]
    flat = np.concatenate([row * width + columns for row, columns in enumerate(positions)])
    targets = torch.from_numpy(ids.reshape(-1)[flat])
    batch: dict[Field, Any] = {Field.ATTENTION_MASK: torch.from_numpy(attention_masks(rows, width))}
    if signal is Signal.MASKED_LOGITS:
        ids.reshape(-1)[flat] = int(tokenizer.mask_token_id)
        batch[Field.MASKED_POSITIONS] = torch.from_numpy(flat)
    batch[Field.INPUT_IDS] = torch.from_numpy(ids)
    for channel in (channel for one in opened.record.annotations if channels for channel in one.channels):
        of_rows = pad_rows([of_row[channel.name] for of_row in channels], channel.padding, multiple=1)
        batch[channel.field] = torch.from_numpy(of_rows)
    if (pattern := opened.record.attention) is not None:
        arrays = {name: value.numpy() for name, value in batch.items()}
        if lacking := pattern.needs - arrays.keys():
            raise DataError(f"attention {pattern.name}: a held-out text has no {', '.join(sorted(lacking))}")
        batch = {name: torch.from_numpy(value) for name, value in pattern.apply(arrays).items()}
    ends = np.cumsum([len(columns) for columns in positions])[:-1]
    # a network of tables looks a token up without the distribution over the vocabulary
    looked_up = getattr(opened.network.base_model, "token_log_probs", None)
    if signal is Signal.NEXT_LOGITS and looked_up is not None:
        with torch.inference_mode():
            values = -looked_up(batch[Field.INPUT_IDS]).flatten()[torch.from_numpy(flat)].double().numpy()
        return list(np.split(values, ends))
    with torch.inference_mode():
        logits = opened.record.head.signals(opened.network, batch, frozenset({signal}))[signal]
        chosen = torch.arange(len(flat))
        if signal is Signal.NEXT_LOGITS:
            logits, chosen = logits.flatten(0, 1), torch.from_numpy(flat - 1)
        # few positions at once: in float64, the logits of a batch take twice the memory
        parts = [slice(begin, begin + POSITIONS) for begin in range(0, len(flat), POSITIONS)]
        losses = [
            cross_entropy(logits[chosen[part]].double(), targets[part], reduction="none").numpy() for part in parts
        ]
        values = np.concatenate(losses) if losses else np.empty(0)
    return list(np.split(values, ends))
