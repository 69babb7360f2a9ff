"""Perplexity of language models on pairs of words that a counted text does not have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.judging.certainty.resampling import RESAMPLES
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.figures import RecordedFigure, quotient
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.models.opening import OpenedModel
    from pipelines.task_families import TaskFamily

FIGURE = "perplexity_of_unseen_pairs"


class UnseenPairsEvaluation(Evaluation, name="unseen_pairs"):
    """Perplexity of the tokens of the test table whose pair with the token before them the tables of a counted stage
    lack: what a model has learnt of words, beyond the pairs that it has seen (Xu & Rudnicky 2000, §5).

    All stages must have the tokenizer of the counted one, and be trained on its text.
    """

    paper = "Xu & Rudnicky 2000"
    judges = "language models"
    needs_signals = frozenset({Signal.NEXT_LOGITS})

    seen_by: str
    """The stage, of n-grams of order 2 or more, whose tables hold the pairs that training had."""
    texts: int = Field(500, ge=1, le=10_000_000)
    """Test texts that every model reads, as in `perplexity`."""
    length: int = Field(256, ge=8)
    """Tokens per row, at most."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [RecordedFigure(FIGURE, cls.name, quotient(1, math.exp), lower=True, bounds=(1.0, math.inf))]

    @property
    def subjects(self) -> tuple[str, ...]:
        return (self.seen_by,)

    def tiny(self) -> Self:
        return self.model_copy(update={"texts": min(self.texts, 4), "length": min(self.length, 32)})

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        read = min(self.texts, size.documents) * size.tokens
        length = min(float(self.length), size.tokens)
        return [ForwardPasses(read / max(1.0, length), length, scored=length)]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        import numpy as np
        import torch

        from pipelines.judging.evaluations.held_out import estimated, sampled_texts
        from pipelines.models.opening import open_model

        torch.set_num_threads(context.threads)
        counted = open_model(context.subjects[self.seen_by][0].folder, "cpu")
        chosen = sampled_texts(context, self.texts)
        texts = [context.family.text(context.rows[index]) for index in chosen]
        rows = _rows(counted, texts, self.length)
        positions = _unseen(counted, rows, self.seen_by)
        stages, headline = [], {}
        for stage, models in context.language_models.items():
            statistics = []
            for model in models:
                opened = open_model(model.folder, "cpu")
                if opened.tokenizer.get_vocab() != counted.tokenizer.get_vocab():
                    raise RecipeError(
                        f"unseen_pairs: {stage} has other tokens than {self.seen_by}, whose pairs are counted; give "
                        "both the same tokenizer and corpus"
                    )
                statistics.append(_losses(opened, rows, positions, len(texts)))
                context.keep(self.name, model, statistics[-1])
            pairs = int(statistics[0][:, 1].sum())
            if not pairs:
                raise RecipeError(f"unseen_pairs: {self.seen_by} has seen every pair of the test texts; raise texts")
            perplexity = estimated(statistics, 1, context.seed, math.exp)
            seeds = [model.seed for model in models]
            stages.append({"stage": stage, "seeds": seeds, "tokens": pairs, "perplexity": perplexity})
            headline[f"{self.name}/{stage}"] = perplexity["mean"]
        return {
            "perplexity": self.name,
            "examples": len(texts),
            "length": self.length,
            "resamples": RESAMPLES,
            "share": float(np.mean([len(unseen) for unseen in positions]) / np.mean([len(row) - 1 for _, row in rows])),
            "stages": stages,
            "headline": headline,
        }


OwnedRow: TypeAlias = "tuple[int, NDArray[np.int64]]"
"""Index of a text, and the token ids of one of its rows, the end of a document first."""


def _rows(opened: OpenedModel, texts: Sequence[str], length: int) -> list[OwnedRow]:
    """The rows of all texts that have a pair."""
    import numpy as np

    from pipelines.judging.evaluations.perplexity import first_token

    start, backend = first_token(opened), opened.tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    rows = []
    for owner, text in enumerate(texts):
        ids = backend.encode(text, add_special_tokens=False).ids
        cut = [ids[begin : begin + length] for begin in range(0, len(ids), length)]
        rows += [(owner, np.asarray([start, *row])) for row in cut if len(row) > 1]
    return rows


def _unseen(counted: OpenedModel, rows: Sequence[OwnedRow], stage: str) -> list[NDArray[np.int64]]:
    """For each row, the positions of tokens whose pair with the token before, both of the text, was not counted."""
    import torch

    from pipelines.networks.ngram import NgramModel

    tables = counted.network.base_model
    if not isinstance(tables, NgramModel) or len(tables.levels) < 2:
        raise RecipeError(
            f"unseen_pairs: seen_by: {stage} is no n-gram model of order 2 or more, whose tables hold pairs"
        )
    size, positions = tables.config.vocab_size, []
    for _, row in rows:
        ids = torch.from_numpy(row)
        missing = tables.levels[1].find(ids[1:-1] * size + ids[2:]) < 0
        positions.append((torch.nonzero(missing).squeeze(1) + 2).numpy())
    return positions


def _losses(
    opened: OpenedModel, rows: Sequence[OwnedRow], positions: Sequence[NDArray[np.int64]], texts: int
) -> NDArray[np.float64]:
    """float64 [texts, 2]: negative log-likelihood in nats of the tokens at `positions`, and their number."""
    import numpy as np

    from pipelines.judging.evaluations.held_out import batches
    from pipelines.models.token_losses import token_losses

    result = np.zeros((texts, 2))
    for chosen in batches([row for _, row in rows], len(opened.tokenizer)):
        read, unseen = [rows[index][1] for index in chosen], [positions[index] for index in chosen]
        for index, values in zip(chosen, token_losses(opened, read, unseen, Signal.NEXT_LOGITS), strict=True):
            result[rows[index][0]] += (values.sum(), len(values))
    return result
