"""Batches as a model reads them: with its knowledge injected, and its attention pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.parts.attention import AttentionPattern
    from pipelines.parts.knowledge import Knowledge
    from pipelines.task_families.encoding import EncodedExamples


class Reading(Protocol):
    """What decides how examples are read: a stage, or the record of a finished model."""

    @property
    def attention(self) -> AttentionPattern | None: ...
    @property
    def knowledge(self) -> Knowledge | None: ...


def complete_batches(
    encoded: EncodedExamples, reading: Reading, tokenizer: PreTrainedTokenizerFast, length: int
) -> None:
    """Let the batches of `encoded` have what the knowledge and the attention pattern of `reading` add.

    Rows have at most `length` tokens. Raises DataError for knowledge that cannot be read.
    """
    pattern = reading.attention
    if reading.knowledge is not None:
        inject = reading.knowledge.injection(tokenizer, length)
        encoded.complete = inject if pattern is None else lambda batch: pattern.apply(inject(batch))
    elif pattern is not None:
        encoded.complete = pattern.apply
