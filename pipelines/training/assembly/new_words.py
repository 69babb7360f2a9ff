"""Vocabulary extension: words of the domain that the start's tokenizer splits get a token, and an initial vector.

Chosen are the words whose pieces cost the most tokens, count · (pieces − 1), as in choosing a vocabulary by how much it
shortens the domain's text (Hong et al. 2021, AVocaDo; Tai et al. 2020, exBERT, adds a domain's WordPieces likewise).
The initial vector is the mean of the vectors of the word's old pieces (Sachidananda et al. 2021, Efficient Domain
Adaptation of Language Models via Adaptive Tokenization, §3.2), in the input and in the output, so that training
continues from the start's behaviour. Text without the new words keeps its tokens; a longer word that begins with a new
one is split after it, as WordPiece does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pipelines.errors import RecipeError

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Fast
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

MULTIPLE = 64
"""The number of rows of an embedding table is rounded up to a multiple of this, as in a new backbone."""
MIN_COUNT = 3
"""Minimum number of occurrences of a new word: its vector is learnt from them."""


def add_words(tokenizer: PreTrainedTokenizerFast, texts: Iterable[str], limit: int) -> None:
    """Add up to `limit` words of `texts` to the end of the vocabulary.

    Raises RecipeError unless it is a WordPiece vocabulary.
    """
    from tokenizers.models import WordPiece

    fast = tokenizer.backend_tokenizer
    model = json.loads(fast.to_str())["model"]
    if model["type"] != WordPiece.__name__:
        raise RecipeError(
            f"vocabulary: words can be added to a WordPiece vocabulary, and that of the start is {model['type']}; "
            "remove `vocabulary`, or train a tokenizer on the domain in a stage without a start"
        )
    words = chosen_words(fast, texts, limit)
    first = len(tokenizer)
    fast.model = WordPiece(
        vocab={**model["vocab"], **{word: first + number for number, word in enumerate(words)}},
        unk_token=model["unk_token"],
        continuing_subword_prefix=model["continuing_subword_prefix"],
        max_input_chars_per_word=model["max_input_chars_per_word"],
    )


def chosen_words(fast: Fast, texts: Iterable[str], limit: int) -> list[str]:
    """The `limit` words of `texts` whose pieces cost the most tokens beyond one, costliest first, then in alphabetical
    order."""
    counts: Counter[str] = Counter()
    for text in texts:
        normal = fast.normalizer.normalize_str(text) if fast.normalizer is not None else text
        counts.update(word for word, _ in fast.pre_tokenizer.pre_tokenize_str(normal))
    candidates = sorted(word for word, count in counts.items() if count >= MIN_COUNT and any(map(str.isalpha, word)))
    unknown = fast.token_to_id(json.loads(fast.to_str())["model"]["unk_token"])
    costs = []
    for word, encoded in zip(candidates, fast.encode_batch(candidates, add_special_tokens=False), strict=True):
        # a word with an unknown character has no pieces for an initial vector
        if len(encoded.ids) > 1 and unknown not in encoded.ids:
            costs.append((-counts[word] * (len(encoded.ids) - 1), word))
    return [word for _, word in sorted(costs)[:limit]]


def pieces_of_new_words(before: PreTrainedTokenizerFast, after: PreTrainedTokenizerFast) -> dict[int, list[int]]:
    """Id of each word that only `after` has → ids of the pieces that `before` splits it into."""
    ids = list(range(len(before), len(after)))
    encoded = before.backend_tokenizer.encode_batch(after.convert_ids_to_tokens(ids), add_special_tokens=False)
    return {word: one.ids for word, one in zip(ids, encoded, strict=True)}


def extend_vocabulary(
    weights: Mapping[str, Tensor], network: PreTrainedModel, pieces: Mapping[int, list[int]]
) -> dict[str, Tensor]:
    """`weights` with every tensor over the vocabulary extended to its size in `network`, which has rows for the new
    words.

    `pieces` maps the id of each new word to the ids of its old pieces: its row is the mean of theirs. Rows after the
    last word keep the values of `network`.
    """
    import torch

    last = network.get_output_embeddings()
    modules = [one for one in (network.get_input_embeddings(), last) if one is not None]
    tables = {id(one.weight) for one in modules} | {id(getattr(one, "bias", None)) for one in modules}
    result = dict(weights)
    for name, parameter in network.named_parameters(remove_duplicate=False):
        if id(parameter) in tables and name in weights:
            old = weights[name]
            rows = parameter.detach().to(old.dtype).clone()
            rows[: len(old)] = old
            for word, ids in pieces.items():
                rows[word] = old[torch.tensor(ids)].mean(0)
            result[name] = rows
    return result
