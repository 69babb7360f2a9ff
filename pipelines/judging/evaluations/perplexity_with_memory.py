"""Perplexity of language models that read a text row by row with the memory of the rows before, and the time of that
beside sliding windows (Dai et al. 2019, Transformer-XL §4.1 and §4.5)."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.figures import RecordedFigure, likelihood_figures, middle_mean
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from torch import Tensor

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.judging.subjects import Subject
    from pipelines.models.opening import OpenedModel
    from pipelines.task_families import TaskFamily

TIMED = "milliseconds_per_token"
WINDOWS = 16
"""Sliding windows that are read at once."""


class PerplexityWithMemory(Evaluation, name="perplexity_with_memory"):
    """Perplexity of the first tokens of each test text, and milliseconds for each of them.

    A model with memory reads rows of `length` tokens, each with what it keeps of those before; any other model reads
    such rows one by one. The time is for the same context everywhere, about `context` tokens before each: a model
    without memory has that only where a window of `context` tokens slides along, token by token.
    """

    paper = "arXiv:1901.02860"
    judges = "language models"
    needs_signals = frozenset({Signal.NEXT_LOGITS})
    nondeterministic_keys = frozenset({TIMED})

    texts: int = Field(200, ge=1, le=10_000_000)
    """Test texts that every model reads, the same for all: a random sample if the table has more."""
    tokens: int = Field(512, ge=16, le=1_000_000)
    """Tokens of a text that are read, at most."""
    length: int = Field(32, ge=1)
    """Tokens of a row."""
    context: int = Field(128, ge=2)
    """Tokens of a sliding window."""
    timed: int = Field(8, ge=1, le=10_000)
    """Texts that each model reads for the time, one at a time."""

    @model_validator(mode="after")
    def _has_rows(self) -> Self:
        if max(self.length, self.context) > self.tokens:
            longest = "length" if self.length > self.context else "context"
            raise ValueError(
                f"{longest}: {max(self.length, self.context)} tokens are more than the {self.tokens} that are read of "
                "a text; lower it, or raise tokens"
            )
        return self

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        likelihood = likelihood_figures(cls.name, "bits_per_byte_with_memory")
        return (
            *likelihood,
            RecordedFigure(TIMED, TIMED, middle_mean, lower=True, unit="ms", bounds=(0.0, math.inf)),
        )

    @property
    def most_memory(self) -> int:
        return self.tokens - self.length

    def tiny(self) -> Self:
        return self.model_copy(update={"texts": min(self.texts, 4), "timed": 1})

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        read = min(float(self.tokens), size.tokens)
        rows = min(self.texts, size.documents) * read / self.length
        windows = ForwardPasses(self.timed * read, min(self.context, read), scored=min(self.context, read))
        return [ForwardPasses(rows, self.length, scored=self.length), windows]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        import numpy as np
        import torch

        from pipelines.judging.certainty.resampling import RESAMPLES
        from pipelines.judging.evaluations.held_out import estimated, sampled_texts
        from pipelines.models.opening import open_model

        torch.set_num_threads(context.threads)
        written = [context.family.text(context.rows[index]) for index in sampled_texts(context, self.texts)]
        stages, headline = [], {}
        for stage, models in context.language_models.items():
            statistics = []
            for model in models:
                opened = open_model(model.folder, "cpu")
                cut = [_cut(opened, text, self.tokens) for text in written]
                nats = [_nats(opened, ids, self.length) for ids, _ in cut]
                sizes = [[len(ids), size] for ids, size in cut]
                statistics.append(np.asarray([[one, *size] for one, size in zip(nats, sizes, strict=True)]))
                context.keep(self.name, model, statistics[-1])
                self._keep_time(context, model, opened, [ids for ids, _ in cut])
            perplexity = estimated(statistics, 1, context.seed, math.exp)
            times = [middle_mean(context.timings[f"{TIMED}/{stage}@{model.seed}"]) for model in models]
            stages.append(
                {
                    "stage": stage,
                    "seeds": [model.seed for model in models],
                    "tokens": int(statistics[0][:, 1].sum()),
                    "unknown": _unknown(opened, [ids for ids, _ in cut]),
                    "perplexity": perplexity,
                    "bits_per_byte": estimated(statistics, 2, context.seed, lambda one: one / math.log(2)),
                    TIMED: times,
                }
            )
            headline[f"{self.name}/{stage}"] = perplexity["mean"]
        return {
            "perplexity": self.name,
            "examples": len(context.rows),
            "length": self.length,
            "resamples": RESAMPLES,
            "stages": stages,
            "headline": headline,
        }

    def _keep_time(
        self, context: EvaluationContext, model: Subject, opened: OpenedModel, texts: Sequence[list[int]]
    ) -> None:
        """Keep the milliseconds per token of each of the first texts [R, 1]."""
        import numpy as np

        read = [ids for ids in texts if ids][: self.timed]
        milliseconds = []
        for ids in read[:1] + read:  # the first is a warm-up: it allocates memory
            started = time.perf_counter()
            if _memory_of(opened):
                _nats(opened, ids, self.length)
            else:
                _sliding_nats(opened, ids, self.context)
            milliseconds.append((time.perf_counter() - started) * 1000 / len(ids))
        context.keep(TIMED, model, np.asarray(milliseconds[1:])[:, None], timed=True)


def _memory_of(opened: OpenedModel) -> int:
    """Most tokens whose states the network keeps."""
    return int(getattr(opened.network.config, "memory_length", 0) or 0)


def _cut(opened: OpenedModel, text: str, tokens: int) -> tuple[list[int], int]:
    """The first `tokens` tokens of `text`, and the bytes that they stand for."""
    backend = opened.tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    encoding = backend.encode(text, add_special_tokens=False)
    ids = list(encoding.ids[:tokens])
    end = len(text) if len(ids) == len(encoding.ids) else encoding.offsets[len(ids) - 1][1]
    return ids, len(text[:end].encode())


def _unknown(opened: OpenedModel, texts: Sequence[list[int]]) -> float:
    tokens = [token for text in texts for token in text]
    return tokens.count(opened.tokenizer.unk_token_id) / max(1, len(tokens))


def _nats(opened: OpenedModel, ids: list[int], length: int) -> float:
    """Negative log-likelihood of a text, read in rows of `length` tokens, each with the memory of those before."""
    import torch

    from pipelines.judging.evaluations.perplexity import first_token
    from pipelines.vocabulary import Field

    head, total, memory = opened.record.head, 0.0, None
    keeps = bool(_memory_of(opened)) and Signal.MEMORY in head.provides
    requested = frozenset({Signal.NEXT_LOGITS, *([Signal.MEMORY] if keeps else [])})
    whole = torch.tensor([first_token(opened), *ids])
    with torch.inference_mode():
        for begin in range(0, len(ids), length):
            row = whole[begin : min(begin + length, len(ids))][None]
            batch: dict[Field, Any] = {Field.INPUT_IDS: row, Field.ATTENTION_MASK: torch.ones_like(row)}
            if memory is not None:
                batch[Field.MEMORY] = memory
            signals = head.signals(opened.network, batch, requested)
            memory = signals.get(Signal.MEMORY)
            total += _loss(signals[Signal.NEXT_LOGITS][0], whole[begin + 1 : begin + 1 + row.shape[1]])
    return total


def _sliding_nats(opened: OpenedModel, ids: list[int], context: int) -> float:
    """Negative log-likelihood of a text, each token predicted at the end of a window of its own, which is read anew."""
    import torch

    from pipelines.judging.evaluations.perplexity import first_token
    from pipelines.vocabulary import Field

    whole, total = torch.tensor([first_token(opened), *ids]), 0.0
    with torch.inference_mode():
        for size in range(1, min(context, len(ids)) + 1):
            # windows at the beginning are shorter; all others have the same width
            ends = [size] if size < context else list(range(size, len(ids) + 1))
            for at in range(0, len(ends), WINDOWS):
                chosen = ends[at : at + WINDOWS]
                rows = torch.stack([whole[end - size : end] for end in chosen])
                batch: dict[Field, Any] = {Field.INPUT_IDS: rows, Field.ATTENTION_MASK: torch.ones_like(rows)}
                logits = opened.record.head.signals(opened.network, batch, frozenset({Signal.NEXT_LOGITS}))
                total += _loss(logits[Signal.NEXT_LOGITS][:, -1], whole[torch.tensor(chosen)])
    return total


def _loss(logits: Tensor, targets: Tensor) -> float:
    from torch.nn.functional import cross_entropy

    return float(cross_entropy(logits.double(), targets, reduction="sum"))
