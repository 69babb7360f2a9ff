"""Perplexity of language models on held-out text: the texts of the test table.

A text longer than a row continues in the next row, which is read without the one before; every row begins with the
special tokens that the tokenizer adds to a text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.judging.certainty.resampling import RESAMPLES, interval
from pipelines.models.opening import OpenedModel, open_model
from pipelines.task_families.tokenized import TokenizedText, annotated, with_edges
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import Row

COLUMNS = ("nats", "tokens", "bytes")
"""Columns of a text's statistics: its negative log-likelihood, and its sizes."""
BATCH_TOKENS = 8192
"""Tokens of a batch, approximately."""
BATCH_LOGITS = 2**27
"""Logits of a batch, approximately: 512 MiB. A batch of a large vocabulary has fewer tokens."""
MAX_NATS = 700.0
"""Upper bound on nats per token; exp of more overflows a float64."""


@dataclass(frozen=True)
class HeldOutText:
    """A text as a model reads it."""

    rows: list[list[int]]
    """Token ids, without special tokens."""
    bytes: int
    """Bytes of its UTF-8 encoding."""
    channels: Sequence[Mapping[Channel, NDArray[Any]]] = ()
    """Channel → [T, *shape] of each row's tokens; nothing where the model has no annotations."""

    def framed_channels(self, before: int, after: int) -> list[dict[str, NDArray[Any]]]:
        """Channel's name → [before + T + after, *shape] of each row between special tokens."""
        return [
            {channel.name: _framed(values, channel, before, after) for channel, values in of_row.items()}
            for of_row in self.channels
        ]


Losses = Callable[[OpenedModel, Sequence[HeldOutText]], list[float]]
"""(model, texts) → the negative log-likelihood of each text in nats."""


def measure(context: EvaluationContext, texts: int, length: int, losses: Losses, name: str) -> dict[str, Any]:
    """Record of the language models' `losses` over `texts` of the test table.

    It has the perplexity per token, and bits per byte, which is comparable between tokenizers.
    """
    import torch

    torch.set_num_threads(context.threads)
    chosen = sampled_texts(context, texts)
    written = [context.rows[index] for index in chosen]
    stages, headline = [], {}
    for stage, models in context.language_models.items():
        statistics = []
        for model in models:
            opened = open_model(model.folder, "cpu")
            capacity = _row_capacity(opened, length)
            shown = [
                held_out_text(context.family.text(row), opened, capacity, row, f"test example {index}")
                for index, row in zip(chosen, written, strict=True)
            ]
            counts = [[sum(map(len, one.rows)), one.bytes] for one in shown]
            statistics.append(
                np.asarray([[nats, *size] for nats, size in zip(losses(opened, shown), counts, strict=True)])
            )
        for model, rows in zip(models, statistics, strict=True):
            context.keep(name, model, rows)
        perplexity = estimated(statistics, 1, context.seed, math.exp)
        stages.append(
            {
                "stage": stage,
                "seeds": [model.seed for model in models],
                "tokens": int(statistics[0][:, 1].sum()),
                "unknown": unknown_share(shown, opened),
                "perplexity": perplexity,
                "bits_per_byte": estimated(statistics, 2, context.seed, lambda nats: nats / math.log(2)),
            }
        )
        headline[f"{name}/{stage}"] = perplexity["mean"]
    return {
        "perplexity": name,
        "examples": len(written),
        "length": length,
        "resamples": RESAMPLES,
        "stages": stages,
        "headline": headline,
    }


def sampled_texts(context: EvaluationContext, texts: int) -> NDArray[np.int64]:
    """Ascending indices of the test texts that every evaluation of `texts` texts reads."""
    random = np.random.default_rng([context.seed, 9])
    return np.sort(random.permutation(len(context.rows))[:texts])


def unknown_share(texts: Sequence[HeldOutText], opened: OpenedModel) -> float:
    """Share of the tokens of `texts` that are unknown words; what they stand for is easier to predict than a word."""
    tokens = [token for text in texts for row in text.rows for token in row]
    return tokens.count(opened.tokenizer.unk_token_id) / max(1, len(tokens))


def batches(rows: Sequence[Sized], vocabulary: int = 1) -> list[list[int]]:
    """Indices of rows that are read together: of similar length, about BATCH_TOKENS tokens, and about BATCH_LOGITS
    logits where every position scores a `vocabulary` of that size."""
    most = min(BATCH_TOKENS, BATCH_LOGITS // vocabulary)
    result: list[list[int]] = []
    batch: list[int] = []
    for row in sorted(range(len(rows)), key=lambda index: len(rows[index])):
        if batch and (len(batch) + 1) * len(rows[row]) > most:
            result.append(batch)
            batch = []
        batch.append(row)
    return result + ([batch] if batch else [])


def held_out_text(text: str, opened: OpenedModel, capacity: int, example: Row, where: str) -> HeldOutText:
    """`text` of `example` in rows of at most `capacity` tokens. Raises DataError if it lacks what annotations read."""
    backend = opened.tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    encoding = backend.encode(text, add_special_tokens=False)
    begins = range(0, len(encoding.ids), capacity)
    rows = [list(encoding.ids[begin : begin + capacity]) for begin in begins]
    annotations = opened.record.annotations
    if not annotations:
        return HeldOutText(rows, len(text.encode()))
    spans = np.asarray(encoding.offsets, dtype=np.int64).reshape(-1, 2)
    values = annotated(annotations, TokenizedText(example, text, "text", spans, None, where))
    channels = [channel for one in annotations for channel in one.channels]
    cut = [{channel: values[channel.name][begin : begin + capacity] for channel in channels} for begin in begins]
    return HeldOutText(rows, len(text.encode()), cut)


def _framed(values: NDArray[Any], channel: Channel, before: int, after: int) -> NDArray[Any]:
    row = np.full((before + len(values) + after, *channel.shape), channel.padding, dtype=channel.kind)
    row[before : before + len(values)] = values
    positions = np.arange(len(row))
    return with_edges(row, (positions >= before) & (positions < before + len(values)), channel)


def _row_capacity(opened: OpenedModel, length: int) -> int:
    """Tokens of text in a row: `length`, or the backbone's maximum, less two special tokens."""
    limit = int(getattr(opened.network.config, "max_position_embeddings", 0) or 0)
    return max(1, (min(length, limit - 2) if limit > 0 else length) - 2)


def estimated(
    models: Sequence[NDArray[np.float64]], column: int, seed: int, transform: Callable[[float], float]
) -> dict[str, Any]:
    """Record of nats per unit of `column` over all texts, each figure passed through `transform`.

    The mean over seeds is taken over nats, so that a perplexity is the geometric mean over seeds.
    """

    def share(statistics: NDArray[np.float64]) -> float:
        return float(statistics[:, 0].sum() / max(statistics[:, column].sum(), 1))

    estimate = interval(share, models, seed, reach=MAX_NATS)
    ends = {name: transform(getattr(estimate, name)) for name in ("mean", "low", "high")}
    return {**ends, "per_seed": [transform(one) for one in estimate.per_seed]}
