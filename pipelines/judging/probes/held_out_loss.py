"""Loss of a language model on plain text, token by token, over the same tokens for every model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.models.token_losses import token_losses
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.judging.probes.model import Encoding, ProbedModel

BATCH = 16
"""Texts per batch."""


def prediction_signal(model: ProbedModel) -> tuple[Signal | None, str]:
    """The signal by which the model predicts tokens, and its description; None and the reason if it predicts none."""
    head, tokenizer = model.opened.record.head, model.opened.tokenizer
    given = {Field.INPUT_IDS, Field.ATTENTION_MASK}
    if model.opened.record.task is not None:
        return None, f"its head ({head.name}) answers a task and predicts no tokens"
    if Signal.MASKED_LOGITS in head.provides and head.needs <= {*given, Field.MASKED_POSITIONS}:
        if tokenizer.mask_token_id is None:
            return None, "its tokenizer has no mask token"
        return Signal.MASKED_LOGITS, "masked tokens"
    if Signal.NEXT_LOGITS in head.provides and head.needs <= given:
        return Signal.NEXT_LOGITS, "next tokens"
    return None, f"its head ({head.name}) predicts neither masked nor next tokens"


def losses(
    model: ProbedModel, texts: Sequence[str], signal: Signal, rate: float, seed: int
) -> tuple[NDArray[np.float64], str]:
    """Summed cross-entropy in nats and number of predicted tokens of the first row of each text, [texts, 2]; and a
    digest of rows and positions, which two models share if their losses are comparable."""
    encodings = model.encode([[text] for text in texts], word_level=False)
    targets = [_target_positions(one, signal, rate, [seed, 11, index]) for index, one in enumerate(encodings)]
    sums = np.zeros((len(texts), 2))
    order = sorted((n for n, positions in enumerate(targets) if len(positions)), key=lambda n: len(encodings[n].ids))
    for first in range(0, len(order), BATCH):
        chosen = order[first : first + BATCH]
        row_losses = token_losses(
            model.opened,
            [encodings[n].ids for n in chosen],
            [targets[n] for n in chosen],
            signal,
            [encodings[n].channels for n in chosen],
        )
        for index, values in zip(chosen, row_losses, strict=True):
            sums[index] = values.sum(), len(values)
    digest = hashlib.blake2b(str(signal).encode(), digest_size=8)
    for one, positions in zip(encodings, targets, strict=True):
        digest.update(one.ids.tobytes() + b"|" + positions.tobytes())
    return sums, digest.hexdigest()


def _target_positions(encoding: Encoding, signal: Signal, rate: float, seed: list[int]) -> NDArray[np.int64]:
    """Positions of the predicted tokens of a row.

    For masked prediction a share `rate`, drawn by `seed`, at least one; for next-token prediction all but the first.
    """
    own = np.flatnonzero(encoding.words >= 0)
    if signal is Signal.NEXT_LOGITS:
        return own[own > 0]
    count = max(1, round(rate * len(own))) if len(own) else 0
    return np.sort(np.random.default_rng(seed).permutation(own)[:count])
