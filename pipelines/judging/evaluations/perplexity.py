"""Perplexity of autoregressive language models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.figures import RecordedFigure, likelihood_figures
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.judging.evaluations.held_out import HeldOutText
    from pipelines.models.opening import OpenedModel
    from pipelines.task_families import TaskFamily


class PerplexityEvaluation(Evaluation, name="perplexity"):
    """Perplexity per token and bits per byte of language models on the texts of the test table (Jelinek et al. 1977).

    Each token is predicted from those before it in its row, the first from the end-of-document token. Perplexities are
    comparable between models with the same tokenizer only; bits per byte between all.
    """

    paper = "Jelinek et al. 1977"
    judges = "language models"
    needs_signals = frozenset({Signal.NEXT_LOGITS})

    texts: int = Field(500, ge=1, le=10_000_000)
    """Test texts that every model reads, the same for all: a random sample if the table has more."""
    length: int = Field(256, ge=8)
    """Tokens per row, at most; fewer if a backbone reads fewer."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return likelihood_figures(cls.name, "bits_per_byte")

    def tiny(self) -> Self:
        return self.model_copy(update={"texts": min(self.texts, 4), "length": min(self.length, 32)})

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        read = min(self.texts, size.documents) * size.tokens
        length = min(float(self.length), size.tokens)
        return [ForwardPasses(read / max(1.0, length), length, scored=length)]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        from pipelines.judging.evaluations.held_out import measure

        return measure(context, self.texts, self.length, next_token_losses, self.name)


def first_token(opened: OpenedModel) -> int:
    """The token before a text, which ends a document, from which its first token is predicted."""
    tokenizer = opened.tokenizer
    return int(tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id)


def next_token_losses(opened: OpenedModel, texts: Sequence[HeldOutText]) -> list[float]:
    """Negative log-likelihood of each text in nats; every token is predicted from those before it in its row."""
    import numpy as np

    from pipelines.judging.evaluations.held_out import batches
    from pipelines.models.token_losses import token_losses

    start = first_token(opened)
    rows = [np.asarray([start, *row]) for text in texts for row in text.rows]
    channels = [one for text in texts for one in text.framed_channels(1, 0)]
    owners = [index for index, text in enumerate(texts) for _ in text.rows]
    losses = [0.0] * len(texts)
    for chosen in batches(rows, len(opened.tokenizer)):
        positions = [np.arange(1, len(rows[row])) for row in chosen]
        row_losses = token_losses(
            opened,
            [rows[row] for row in chosen],
            positions,
            Signal.NEXT_LOGITS,
            [channels[row] for row in chosen if channels],
        )
        for row, values in zip(chosen, row_losses, strict=True):
            losses[owners[row]] += float(values.sum())
    return losses
