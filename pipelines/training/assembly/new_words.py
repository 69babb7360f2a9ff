"""A vocabulary that grows: words of the domain that the start's tokenizer cuts get a token, and a vector to begin with.

Which words: those whose pieces cost the most tokens, count · (pieces − 1), as in choosing a vocabulary by how much shorter it
makes the domain's text (Hong et al. 2021, AVocaDo; Tai et al. 2020, exBERT, adds a domain's WordPieces likewise). What vector:
the mean of the vectors of its old pieces (Sachidananda et al. 2021, Efficient Domain Adaptation of Language Models via Adaptive
Tokenization, §3.2), in the input and in the output, so that the network goes on from where it was. Text without the new words
keeps its tokens; a longer word that begins with a new one is cut behind it, as WordPiece does.
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
"""Rows of a table over the vocabulary are a multiple of this, as those of a new body are."""
LEAST = 3
"""Times that a word must have been seen: a vector is learnt from its occurrences."""


def add_words(tokenizer: PreTrainedTokenizerFast, texts: Iterable[str], most: int) -> None:
    """Give at most `most` words of `texts` a token each, behind all there are. Raises RecipeError for no WordPiece vocabulary."""
    from tokenizers.models import WordPiece

    fast = tokenizer.backend_tokenizer
    said = json.loads(fast.to_str())["model"]
    if said["type"] != WordPiece.__name__:
        raise RecipeError(
            f"vocabulary: words can be added to a WordPiece vocabulary, and that of the start is {said['type']}; leave "
            "vocabulary out, or train a tokenizer of the domain's own in a stage without a start"
        )
    words = chosen_words(fast, texts, most)
    first = len(tokenizer)
    fast.model = WordPiece(
        vocab={**said["vocab"], **{word: first + number for number, word in enumerate(words)}},
        unk_token=said["unk_token"],
        continuing_subword_prefix=said["continuing_subword_prefix"],
        max_input_chars_per_word=said["max_input_chars_per_word"],
    )


def chosen_words(fast: Fast, texts: Iterable[str], most: int) -> list[str]:
    """The words of `texts` whose pieces cost the most tokens beyond one, costliest first, then in the order of the alphabet."""
    counts: Counter[str] = Counter()
    for text in texts:
        normal = fast.normalizer.normalize_str(text) if fast.normalizer is not None else text
        counts.update(word for word, _ in fast.pre_tokenizer.pre_tokenize_str(normal))
    seen = sorted(word for word, count in counts.items() if count >= LEAST and any(map(str.isalpha, word)))
    unknown = fast.token_to_id(json.loads(fast.to_str())["model"]["unk_token"])
    costs = []
    for word, encoded in zip(seen, fast.encode_batch(seen, add_special_tokens=False), strict=True):
        # a word with an unknown character has no pieces to begin from
        if len(encoded.ids) > 1 and unknown not in encoded.ids:
            costs.append((-counts[word] * (len(encoded.ids) - 1), word))
    return [word for _, word in sorted(costs)[:most]]


def pieces_of_new_words(before: PreTrainedTokenizerFast, after: PreTrainedTokenizerFast) -> dict[int, list[int]]:
    """The id of each word that `after` knows beyond `before`, and the ids of the pieces that `before` cuts it into."""
    ids = list(range(len(before), len(after)))
    encoded = before.backend_tokenizer.encode_batch(after.convert_ids_to_tokens(ids), add_special_tokens=False)
    return {word: one.ids for word, one in zip(ids, encoded, strict=True)}


def grown(
    weights: Mapping[str, Tensor], network: PreTrainedModel, pieces: Mapping[int, list[int]]
) -> dict[str, Tensor]:
    """`weights` with every table over the vocabulary as long as in `network`, which has room for the new words.

    `pieces` maps the id of each new word to the ids of its old pieces: its row is the mean of theirs. Rows behind the last
    word keep what they hold there.
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
