"""Text that no language model of a recipe has read, in rows that it can, and how well it predicts them.

The rows are the texts of the test table. A text longer than a row goes on in the next, which is read without the one before;
every row begins with the tokens that the tokenizer frames a text with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.judging.certainty.resampling import RESAMPLES, interval
from pipelines.models.opening import OpenedModel, open_model

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast

    from pipelines.judging.evaluations.stage import EvaluationContext

COLUMNS = ("nats", "tokens", "bytes")
"""Columns of a text's statistics: its negative log-likelihood, and its size."""
BATCH_TOKENS = 8192
MAX_NATS = 700.0
"""Of a token, at most: e to the power of more is no number."""


@dataclass(frozen=True)
class HeldOutText:
    """A text as a model reads it."""

    rows: list[list[int]]
    """Token ids, without the frame."""
    bytes: int


Losses = Callable[[OpenedModel, Sequence[HeldOutText]], list[float]]
"""(model, texts) → the negative log-likelihood of each text in nats."""


def measure(evaluated: EvaluationContext, texts: int, length: int, losses: Losses, name: str) -> dict[str, Any]:
    """The record of what `losses` says of the language models over `texts` of the test table: perplexity a token, and bits a
    byte, which models with other tokenizers share.
    """
    import torch

    torch.set_num_threads(evaluated.threads)
    random = np.random.default_rng([evaluated.seed, 9])
    chosen = np.sort(random.permutation(len(evaluated.rows))[:texts])
    written = [evaluated.family.text(evaluated.rows[index]) for index in chosen]
    stages, headline = [], {}
    for stage, models in evaluated.language_models.items():
        heard = []
        for model in models:
            opened = open_model(model.folder, "cpu")
            shown = [_rows(text, opened.tokenizer, _room(opened, length)) for text in written]
            counts = [[sum(map(len, one.rows)), one.bytes] for one in shown]
            heard.append(np.asarray([[nats, *size] for nats, size in zip(losses(opened, shown), counts, strict=True)]))
        perplexity = _estimate(heard, 1, evaluated.seed, math.exp)
        stages.append(
            {
                "stage": stage,
                "seeds": [model.seed for model in models],
                "tokens": int(heard[0][:, 1].sum()),
                "perplexity": perplexity,
                "bits_per_byte": _estimate(heard, 2, evaluated.seed, lambda nats: nats / math.log(2)),
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


def batches(rows: Sequence[Sized]) -> list[list[int]]:
    """The numbers of rows that are read together: of like length, about BATCH_TOKENS tokens."""
    found: list[list[int]] = []
    batch: list[int] = []
    for row in sorted(range(len(rows)), key=lambda number: len(rows[number])):
        if batch and (len(batch) + 1) * len(rows[row]) > BATCH_TOKENS:
            found.append(batch)
            batch = []
        batch.append(row)
    return found + ([batch] if batch else [])


def _rows(text: str, tokenizer: PreTrainedTokenizerFast, room: int) -> HeldOutText:
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    ids = list(backend.encode(text, add_special_tokens=False).ids)
    return HeldOutText([ids[begin : begin + room] for begin in range(0, len(ids), room)], len(text.encode()))


def _room(opened: OpenedModel, length: int) -> int:
    """Tokens of text in a row: `length`, or what the body reads, less the two that frame it."""
    limit = int(getattr(opened.network.config, "max_position_embeddings", 0) or 0)
    return max(1, (min(length, limit - 2) if limit > 0 else length) - 2)


def _estimate(
    models: Sequence[NDArray[np.float64]], column: int, seed: int, written: Callable[[float], float]
) -> dict[str, Any]:
    """The record of nats for each of what `column` counts, over all texts; `written` makes of nats what is recorded.

    The mean over seeds is that of the nats, so that a perplexity is the geometric mean of theirs.
    """

    def share(statistics: NDArray[np.float64]) -> float:
        return float(statistics[:, 0].sum() / max(statistics[:, column].sum(), 1))

    found = interval(share, models, seed, reach=MAX_NATS)
    ends = {name: written(getattr(found, name)) for name in ("mean", "low", "high")}
    return {**ends, "per_seed": [written(one) for one in found.per_seed]}
