"""Pseudo-perplexity of masked language models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.figures import RecordedFigure, likelihood_figures
from pipelines.vocabulary import Field as BatchField
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.judging.evaluations.held_out import HeldOutText
    from pipelines.models.opening import OpenedModel
    from pipelines.task_families import TaskFamily

FIELDS = frozenset({BatchField.INPUT_IDS, BatchField.ATTENTION_MASK, BatchField.MASKED_POSITIONS})
"""Fields that a head may need: a row with its masked positions."""
SPAN_FIELDS = frozenset({BatchField.SPAN_EDGES, BatchField.SPAN_OFFSETS})
"""Fields of a head on masked tokens that only another of its signals reads."""


class PseudoPerplexityEvaluation(Evaluation, name="pseudo_perplexity"):
    """Pseudo-perplexity: each token of the test table's texts predicted from all others (Salazar et al. 2020, eq. 3).

    Every token is masked in a row of its own, so a text of n tokens is read n times. Pseudo-perplexities are no
    likelihoods: compare them between masked language models only, never with perplexities.
    """

    paper = "arXiv:1910.14659"
    judges = "language models"
    needs_signals = frozenset({Signal.MASKED_LOGITS})

    texts: int = Field(100, ge=1, le=10_000_000)
    """Test texts that every model reads, the same for all: a random sample if the table has more."""
    length: int = Field(64, ge=8)
    """Tokens per row, at most; each row is read once per token."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return likelihood_figures(cls.name, "pseudo_bits_per_byte")

    def tiny(self) -> Self:
        return self.model_copy(update={"texts": min(self.texts, 2), "length": min(self.length, 16)})

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        read = min(self.texts, size.documents) * size.tokens
        return [ForwardPasses(read, min(float(self.length), size.tokens), scored=1)]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """Raises RecipeError for a stage whose head predicts masked tokens in an order of its own."""
        from pipelines.judging.evaluations.held_out import measure

        return measure(context, self.texts, self.length, masked_token_losses, self.name)


def masked_token_losses(opened: OpenedModel, texts: Sequence[HeldOutText]) -> list[float]:
    """Negative pseudo-log-likelihood of each text in nats: the sum over its tokens, each predicted from the others."""
    import numpy as np

    from pipelines.judging.evaluations.held_out import batches
    from pipelines.models.token_losses import token_losses

    head, tokenizer = opened.record.head, opened.tokenizer
    if more := head.needs - FIELDS - SPAN_FIELDS:
        raise RecipeError(
            f"evaluation pseudo_perplexity: the head {head.name} needs {', '.join(sorted(more))} to predict a token; "
            "name a stage that was trained on masked tokens only"
        )
    first, last = _special_tokens(tokenizer)
    framed = [np.asarray([*first, *row, *last]) for text in texts for row in text.rows]
    channels = [one for text in texts for one in text.framed_channels(len(first), len(last))]
    owners = [index for index, text in enumerate(texts) for _ in text.rows]
    sizes = [len(row) for text in texts for row in text.rows]
    masked = [(row, position) for row, size in enumerate(sizes) for position in range(size)]
    losses = [0.0] * len(texts)
    for chosen in batches([framed[row] for row, _ in masked]):
        rows = [framed[masked[one][0]] for one in chosen]
        positions = [np.asarray([len(first) + masked[one][1]]) for one in chosen]
        of_rows = [channels[masked[one][0]] for one in chosen if channels]
        row_losses = token_losses(opened, rows, positions, Signal.MASKED_LOGITS, of_rows)
        for one, values in zip(chosen, row_losses, strict=True):
            losses[owners[masked[one][0]]] += float(values[0])
    return losses


def _special_tokens(tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """Special tokens before and after a text."""
    backend = tokenizer.backend_tokenizer
    bare, framed = (list(backend.encode("a", add_special_tokens=added).ids) for added in (False, True))
    begin = next(index for index in range(len(framed)) if framed[index : index + len(bare)] == bare)
    return framed[:begin], framed[begin + len(bare) :]
