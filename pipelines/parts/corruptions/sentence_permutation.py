"""Sentence permutation: the sentences of a row in a random order (Lewis et al. 2019, BART §2.2)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.rewriting import Rewriting, text_bounds
from pipelines.vocabulary import Field

BYTES = {"ãĢĤ": "。", "ï¼ģ": "！", "ï¼Ł": "？"}
"""Full stops of Chinese, as tokenizers of bytes write them."""
STOPS = (".", "!", "?", *BYTES.values(), *BYTES)
SPACES = ("Ġ", "▁")
"""Marks of a token that follows a space."""


class SentencePermutation(Rewriting, name="sentence_permutation"):
    """Divide each row into sentences at full stops, and shuffle them.

    A token that ends with a full stop ends a sentence, and so does the special token between two documents. Where the
    tokenizer marks spaces, a Latin full stop has to come before one: `numpy.linalg` is one word.
    """

    paper = "arXiv:1910.13461"
    reorders = True

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean = batch[Field.INPUT_IDS]
        ordinary = is_ordinary(clean, tokens)
        begin, end = text_bounds(ordinary)
        columns = np.arange(clean.shape[1])
        sentences = np.cumsum(_begins(clean, ordinary, tokens).astype(np.int64), axis=1)
        draws = np.take_along_axis(random.random((len(clean), clean.shape[1] + 1)), sentences, axis=1)
        # tokens before the text come first, those after it last
        keys = np.where(columns < begin, -1.0, np.where(columns >= end, 2.0, draws))
        return self.rearranged(batch, np.argsort(keys, axis=1, kind="stable"))


def _begins(ids: NDArray[np.int64], ordinary: NDArray[np.bool_], tokens: TokenIds) -> NDArray[np.bool_]:
    """Bool [B, L]: tokens that come after the end of a sentence."""
    stops, spaced = _kinds(tokens.texts)
    result = np.zeros_like(ordinary)
    if tokens.texts:
        after = np.maximum(spaced[ids[:, 1:]], ~ordinary[:, 1:])
        result[:, 1:] = (stops[ids[:, :-1]] == 2) | ((stops[ids[:, :-1]] == 1) & after)
    result[:, 1:] |= ~ordinary[:, :-1]
    return result


@lru_cache(maxsize=4)
def _kinds(texts: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each token 1 if it ends with a Latin full stop, 2 with a Chinese one, otherwise 0; whether it follows a
    space, for all tokens true where none has a mark."""
    stops = [2 if one.endswith(STOPS[3:]) else int(one.endswith(STOPS)) for one in texts]
    spaced = np.asarray([one.startswith(SPACES) for one in texts], dtype=np.bool_)
    return np.asarray(stops, dtype=np.int64), spaced if spaced.any() else ~spaced
