"""Spans taken out of the input, to be written by a decoder (Raffel et al. 2019, T5 §3.1.4 and §3.3.4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.errors import RecipeError
from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field


class SentinelSpans(Corruption, name="sentinel_spans"):
    """Replace spans of each row by sentinels; the target is each sentinel and what it stands for.

        thank you for inviting me to your party last week </s>
        input   thank you <0> me to your party <1> </s>            target   <0> for inviting <1> last week </s>

    Numbers of tokens and of spans are those of the paper's code, functions of the row's length alone: every row of a
    batch, and every batch, has the same shape and nothing is padded. As in that code a row begins with text and ends with
    a span, the target ends without a sentinel of its own, and an end of document inside a row is a token like any other.
    A row's last token, which closes it, always stays.
    """

    paper = "arXiv:1910.10683"
    needs_tokens = frozenset({"sentinels"})
    provides = frozenset({Field.TARGET_IDS})
    replaces = frozenset(
        {
            Field.ORIGINAL_IDS,
            Field.ATTENTION_MASK,
            Field.TOKEN_TYPE_IDS,
            Field.POSITION_IDS,
            Field.DOCUMENTS,
            Field.WORD_STARTS,
            Field.MASKED_POSITIONS,
            Field.MASKED_LABELS,
            Field.SPAN_EDGES,
            Field.SPAN_OFFSETS,
            Field.PERMUTATION_MASK,
            Field.TARGET_MAPPING,
        }
    )

    density: float = Option(0.15, gt=0, lt=1)
    """Share of a row's tokens to be taken out."""
    mean_length: float = Option(3.0, ge=1)
    """Tokens of a span in the mean."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        """`batch` with INPUT_IDS [B, kept + spans + 1], TARGET_IDS [B, taken + spans + 1], and without what it replaces.

        Raises RecipeError for rows of fewer than three tokens, and for rows with more spans than there are sentinels.
        """
        clean = batch[Field.INPUT_IDS]
        rows, length = len(clean), clean.shape[1] - 1
        if length < 2:
            raise RecipeError(f"sentinel_spans: a row of {length + 1} tokens has nothing to take out; give 3 or more")
        taken = min(max(round(length * self.density), 1), length - 1)
        spans = min(max(round(taken / self.mean_length), 1), length - taken)
        if spans > len(tokens.sentinels):
            raise RecipeError(
                f"sentinel_spans: a row of {length + 1} tokens has {spans} spans and the tokenizer {len(tokens.sentinels)} "
                f"sentinels; give the tokenizer {spans} of them, or the stage shorter rows"
            )
        noise, begins = _noise(rows, length, taken, spans, random)
        kept = _cut(clean[:, :-1], ~noise, noise & begins, tokens)
        written = _cut(clean[:, :-1], noise, ~noise & begins, tokens)
        return {
            **{name: value for name, value in batch.items() if name not in self.replaces},
            Field.INPUT_IDS: np.concatenate([kept, clean[:, -1:]], axis=1),
            Field.TARGET_IDS: np.concatenate([written, np.full((rows, 1), tokens.end)], axis=1),
        }


def _cut(
    body: NDArray[np.int64], stays: NDArray[np.bool_], replaced: NDArray[np.bool_], tokens: TokenIds
) -> NDArray[np.int64]:
    """int64 [B, n]: the tokens of `body` [B, L] that stay, and a sentinel in place of each that is `replaced`."""
    result = body.copy()
    number = np.cumsum(replaced, axis=1)[replaced] - 1
    result[replaced] = np.asarray(tokens.sentinels, dtype=np.int64)[number]
    return result[stays | replaced].reshape(len(body), -1)


def _noise(
    rows: int, length: int, taken: int, spans: int, random: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Bool [B, L] twice: tokens that are taken out, and tokens that begin a span of either kind.

    Text and spans alternate, text first; lengths of each kind are a uniformly random composition of its tokens.
    """
    lengths = np.empty((rows, 2 * spans), dtype=np.int64)
    lengths[:, 0::2] = _composition(rows, length - taken, spans, random)
    lengths[:, 1::2] = _composition(rows, taken, spans, random)
    begins = np.zeros((rows, length), dtype=np.bool_)
    np.put_along_axis(begins, np.cumsum(lengths, axis=1) - lengths, True, axis=1)
    return np.cumsum(begins, axis=1) % 2 == 0, begins


def _composition(rows: int, items: int, parts: int, random: np.random.Generator) -> NDArray[np.int64]:
    """int64 [rows, parts]: positive numbers that sum to `items`, every such list equally likely."""
    cuts = np.full((rows, parts + 1), items, dtype=np.int64)
    cuts[:, 0] = 0
    if parts > 1:
        draws = random.random((rows, items - 1), dtype=np.float32)
        cuts[:, 1:-1] = 1 + np.sort(np.argpartition(draws, parts - 2, axis=1)[:, : parts - 1], axis=1)
    return np.diff(cuts, axis=1)
