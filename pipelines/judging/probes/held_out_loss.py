"""The loss of a language model on plain text, token by token, with the same tokens asked of every model."""

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
"""Texts that are read at a time."""


def prediction_signal(model: ProbedModel) -> tuple[Signal | None, str]:
    """What the model predicts tokens by, and how it is asked; None, and why, for one that is not asked."""
    head, tokenizer = model.opened.record.head, model.opened.tokenizer
    given = {Field.INPUT_IDS, Field.ATTENTION_MASK}
    if model.opened.record.task is not None:
        return None, f"its head ({head.name}) answers a task and predicts no token"
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
    """[texts, 2]: summed cross-entropy in nats and number of the tokens asked of the first row of each text; and a digest of
    what was asked, which two models share when their losses can be compared."""
    encodings = model.encode([[text] for text in texts], of_words=False)
    asked = [_asked(one, signal, rate, [seed, 11, number]) for number, one in enumerate(encodings)]
    found = np.zeros((len(texts), 2))
    order = sorted((n for n, places in enumerate(asked) if len(places)), key=lambda n: len(encodings[n].ids))
    for first in range(0, len(order), BATCH):
        chosen = order[first : first + BATCH]
        said = token_losses(model.opened, [encodings[n].ids for n in chosen], [asked[n] for n in chosen], signal)
        for number, values in zip(chosen, said, strict=True):
            found[number] = values.sum(), len(values)
    digest = hashlib.blake2b(str(signal).encode(), digest_size=8)
    for one, places in zip(encodings, asked, strict=True):
        digest.update(one.ids.tobytes() + b"|" + places.tobytes())
    return found, digest.hexdigest()


def _asked(encoding: Encoding, signal: Signal, rate: float, seed: list[int]) -> NDArray[np.int64]:
    """The places of a row whose tokens are asked: a share `rate` drawn by `seed`, at least one; or all that follow another."""
    own = np.flatnonzero(encoding.words >= 0)
    if signal is Signal.NEXT_LOGITS:
        return own[own > 0]
    wanted = max(1, round(rate * len(own))) if len(own) else 0
    return np.sort(np.random.default_rng(seed).permutation(own)[:wanted])
