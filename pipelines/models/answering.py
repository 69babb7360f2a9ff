"""Answers of a network to examples, a bounded number of them at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.models.features import encode_examples
from pipelines.models.reading import complete_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.models.reading import Reading
    from pipelines.parts.heads import Batch, FeatureTokenizer, Head, Signals
    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.encoding import EncodedExamples
    from pipelines.vocabulary import Signal

BATCH = 32
BLOCK = 8192
"""Examples that are encoded, sorted by length and answered together."""
CHARACTERS = 2**24
"""No further ones join a block of so many characters."""


def answered(
    network: PreTrainedModel,
    head: Head,
    rows: Sequence[Row],
    task: Task,
    tokenizer: PreTrainedTokenizerFast,
    length: int,
    features: Sequence[FeatureTokenizer],
    reading: Reading,
) -> list[Answer]:
    """The answer of `network` to each of `rows`, in order, read in rows of at most `length` tokens.

    Raises DataError with the row if it cannot be read.
    """
    import torch

    encoded = encode_examples(head, rows, task, tokenizer, length, features, answers=False)
    complete_batches(encoded, reading, tokenizer, length)
    with torch.inference_mode():
        return head.answer(network, encoded, outputs_of(network, head, encoded, head.answers_from), task, tokenizer)


def outputs_of(
    network: PreTrainedModel, head: Head, encoded: EncodedExamples, requested: frozenset[Signal], size: int = BATCH
) -> Iterator[tuple[NDArray[np.int64], Batch, Signals]]:
    """Row indices, batch and `requested` signals of `network`, by ascending length."""
    import torch

    order = np.argsort(encoded.lengths, kind="stable")
    device = getattr(network, "device", None)
    for begin in range(0, len(order), size):
        chosen = order[begin : begin + size]
        batch = {name: torch.from_numpy(value).to(device) for name, value in encoded.batch(chosen).items()}
        yield chosen, batch, head.signals(network, batch, requested) if requested else {}
