"""Pseudo-perplexity of models that fill masked tokens in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PositiveInt

from pipelines.errors import RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.vocabulary import Field as Batched
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.judging.evaluations.held_out import HeldOutText
    from pipelines.judging.evaluations.stage import EvaluationContext
    from pipelines.models.opening import OpenedModel

ASKED = frozenset({Batched.INPUT_IDS, Batched.ATTENTION_MASK, Batched.MASKED_POSITIONS})
OF_SPANS = frozenset({Batched.SPAN_EDGES, Batched.SPAN_OFFSETS})
"""Fields of a head on masked tokens that another of its signals reads."""


class PseudoPerplexityEvaluation(Evaluation, name="pseudo_perplexity"):
    """How well masked language models predict each token of the test table's texts from all others (Salazar et al. 2020, eq. 3).

    Every token is masked in a row of its own, so that a text of n tokens is read n times. These are not the likelihoods of
    texts: compare them between masked models, and with perplexities not at all.
    """

    paper = "arXiv:1910.14659"
    judges = "language models"
    needs_signals = frozenset({Signal.MASKED_LOGITS})

    texts: PositiveInt = 100
    """Test texts that are read, the same by every model: drawn by the seed where the table has more."""
    length: int = Field(64, ge=8)
    """Tokens in a row, at most: each is read as often as it has tokens."""

    def tiny(self) -> Self:
        return self.model_copy(update={"texts": min(self.texts, 2), "length": min(self.length, 16)})

    def readings(self, asked: EvaluationSize) -> Sequence[ForwardPasses]:
        read = min(self.texts, asked.documents) * asked.tokens
        return [ForwardPasses(read, min(float(self.length), asked.tokens), scored=1)]

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        """Raises RecipeError for a stage whose head predicts masked tokens in an order of its own."""
        from pipelines.judging.evaluations.held_out import measure

        return measure(evaluated, self.texts, self.length, masked_token_losses, self.name)


def masked_token_losses(opened: OpenedModel, texts: Sequence[HeldOutText]) -> list[float]:
    """The negative pseudo-log-likelihood of each text in nats: the sum over its tokens, each predicted from the others."""
    import numpy as np

    from pipelines.judging.evaluations.held_out import batches
    from pipelines.models.token_losses import token_losses

    head, tokenizer = opened.record.head, opened.tokenizer
    if more := head.needs - ASKED - OF_SPANS:
        raise RecipeError(
            f"evaluation pseudo_perplexity: the head {head.name} needs {', '.join(sorted(more))} to predict a token; judge a "
            "stage that was trained on masked tokens alone"
        )
    first, last = _frame(tokenizer)
    framed = [np.asarray([*first, *row, *last]) for text in texts for row in text.rows]
    owners = [number for number, text in enumerate(texts) for _ in text.rows]
    sizes = [len(row) for text in texts for row in text.rows]
    asked = [(number, place) for number, size in enumerate(sizes) for place in range(size)]
    losses = [0.0] * len(texts)
    for chosen in batches([framed[number] for number, _ in asked]):
        rows = [framed[asked[one][0]] for one in chosen]
        places = [np.asarray([len(first) + asked[one][1]]) for one in chosen]
        for one, values in zip(chosen, token_losses(opened, rows, places, Signal.MASKED_LOGITS), strict=True):
            losses[owners[asked[one][0]]] += float(values[0])
    return losses


def _frame(tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """The tokens that a text stands between."""
    backend = tokenizer.backend_tokenizer
    bare, framed = (list(backend.encode("a", add_special_tokens=added).ids) for added in (False, True))
    begin = next(at for at in range(len(framed)) if framed[at : at + len(bare)] == bare)
    return framed[:begin], framed[begin + len(bare) :]
