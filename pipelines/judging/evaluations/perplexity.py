"""Perplexity of models that read from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PositiveInt

from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from pipelines.judging.evaluations.held_out import HeldOutText
    from pipelines.judging.evaluations.stage import EvaluationContext
    from pipelines.models.opening import OpenedModel


class PerplexityEvaluation(Evaluation, name="perplexity"):
    """How well language models predict the texts of the test table: perplexity a token, and bits a byte (Jelinek et al. 1977).

    Each token is predicted from those before it in its row, the first from the token that ends a document. Perplexities
    compare models of the same tokenizer only; bits a byte compare all.
    """

    paper = "Jelinek et al. 1977"
    judges = "language models"
    needs_signals = frozenset({Signal.NEXT_LOGITS})

    texts: PositiveInt = 500
    """Test texts that are read, the same by every model: drawn by the seed where the table has more."""
    length: int = Field(256, ge=8)
    """Tokens in a row, at most; fewer where a body reads fewer."""

    def tiny(self) -> Self:
        return self.model_copy(update={"texts": min(self.texts, 4), "length": min(self.length, 32)})

    def readings(self, asked: EvaluationSize) -> Sequence[ForwardPasses]:
        read = min(self.texts, asked.documents) * asked.tokens
        length = min(float(self.length), asked.tokens)
        return [ForwardPasses(read / max(1.0, length), length, scored=length)]

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        from pipelines.judging.evaluations.held_out import measure

        return measure(evaluated, self.texts, self.length, next_token_losses, self.name)


def next_token_losses(opened: OpenedModel, texts: Sequence[HeldOutText]) -> list[float]:
    """The negative log-likelihood of each text in nats, every token after those before it in its row."""
    import numpy as np

    from pipelines.judging.evaluations.held_out import batches
    from pipelines.models.token_losses import token_losses

    tokenizer = opened.tokenizer
    start = int(tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id)
    rows = [np.asarray([start, *row]) for text in texts for row in text.rows]
    owners = [number for number, text in enumerate(texts) for _ in text.rows]
    losses = [0.0] * len(texts)
    for chosen in batches(rows):
        asked = [np.arange(1, len(rows[row])) for row in chosen]
        said = token_losses(opened, [rows[row] for row in chosen], asked, Signal.NEXT_LOGITS)
        for row, values in zip(chosen, said, strict=True):
            losses[owners[row]] += float(values.sum())
    return losses
