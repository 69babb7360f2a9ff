"""How well a language model predicts tokens that it is asked for: from those before them, or hidden among all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.task_families.encoding import attention, padded
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.models.opening import Opened


def token_losses(
    opened: Opened, rows: Sequence[NDArray[np.int64]], asked: Sequence[NDArray[np.int64]], signal: Signal
) -> list[NDArray[np.float64]]:
    """Of each row of token ids the cross-entropy in nats of the tokens at the places `asked`, all rows in one batch.

    `signal` is NEXT_LOGITS, and no first place is asked; or MASKED_LOGITS, and all that is asked of a row is hidden at once:
    none is left as it was or replaced by another, as some are where one trains.
    """
    import torch
    from torch.nn.functional import cross_entropy

    tokenizer = opened.tokenizer
    # not rounded up: a body may read exactly as many positions as the longest row has
    ids = padded(rows, int(tokenizer.pad_token_id or 0), multiple=1)
    width = ids.shape[1]
    places = np.concatenate([line * width + one for line, one in enumerate(asked)])
    wanted = torch.from_numpy(ids.reshape(-1)[places])
    batch: dict[Field, Any] = {Field.ATTENTION_MASK: torch.from_numpy(attention(rows, width))}
    if signal is Signal.MASKED_LOGITS:
        ids.reshape(-1)[places] = int(tokenizer.mask_token_id)
        batch[Field.MASKED_POSITIONS] = torch.from_numpy(places)
    batch[Field.INPUT_IDS] = torch.from_numpy(ids)
    with torch.inference_mode():
        logits = opened.record.head.signals(opened.network, batch, frozenset({signal}))[signal]
        if signal is Signal.NEXT_LOGITS:
            logits = logits.flatten(0, 1)[torch.from_numpy(places - 1)]
        values = cross_entropy(logits.double(), wanted, reduction="none").numpy()
    ends = np.cumsum([len(one) for one in asked])[:-1]
    return list(np.split(values, ends))
