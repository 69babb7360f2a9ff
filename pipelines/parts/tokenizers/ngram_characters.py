"""Characters, and the n-grams of them that hold together in the corpus, for networks that read both (Diao et al. 2019,
ZEN)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field

from pipelines.errors import DataError
from pipelines.parts.tokenizers.characters import Characters

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class NgramCharacters(Characters, name="ngram_characters"):
    """One token per character, as `characters`, with a lexicon of n-grams from pointwise mutual information.

    Two neighbouring characters hold together where log₂ p(xy) / (p(x) p(y)) reaches a threshold; a text falls apart
    where they do not, and what is left whole is an n-gram. The most frequent ones are kept: list[list[int]]
    `init_kwargs["ngrams"]`, the tokens of each, the most frequent first. A network finds them in its rows.
    """

    paper = "arXiv:1911.00720"
    offers: ClassVar[frozenset[str]] = frozenset({"mask", "ngrams"})

    ngrams: int = Field(10_000, ge=1, le=10_000_000)
    """Largest number of n-grams."""
    longest: int = Field(6, ge=2, le=32)
    """Characters of the longest n-gram that is kept."""
    threshold: float = Field(3.0, ge=-100, le=100)
    """Mutual information, in bits, from which two characters hold together."""
    min_count: int = Field(5, ge=1)
    """Minimum frequency of an n-gram."""

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        kept = [*texts]
        tokenizer = super().train(kept)
        rows = [*self._rows(tokenizer, kept)]
        information = mutual_information(rows)
        counted = Counter(whole for row in rows for whole in wholes(row, information, self.threshold))
        ranked = sorted(
            (-count, ngram)
            for ngram, count in counted.items()
            if 2 <= len(ngram) <= self.longest and count >= self.min_count
        )
        if not ranked:
            raise DataError(
                f"tokenizer {self.name}: no n-gram of 2 to {self.longest} characters occurs {self.min_count} times or "
                "more; give more text, or lower min_count or threshold"
            )
        tokenizer.init_kwargs["ngrams"] = [list(ngram) for _, ngram in ranked[: self.ngrams]]
        return tokenizer

    def _rows(self, tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """The tokens of each run of letters, digits and ideographs with a token of their own."""
        tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        special = set(tokenizer.all_special_ids)
        joins = [at not in special and token.isalnum() for at, token in enumerate(tokens)]
        for text in texts:
            run: list[int] = []
            for at in tokenizer(text, add_special_tokens=False)["input_ids"]:
                if joins[at]:
                    run.append(at)
                elif run:
                    yield tuple(run)
                    run = []
            if run:
                yield tuple(run)

    def tiny(self) -> Self:
        return super().tiny().model_copy(update={"ngrams": min(self.ngrams, 200), "min_count": min(self.min_count, 2)})


def mutual_information(rows: Sequence[Sequence[int]]) -> dict[tuple[int, int], float]:
    """log₂ p(xy) / (p(x) p(y)) of each pair of neighbours, from counts of single ones and of pairs."""
    single = Counter(one for row in rows for one in row)
    pairs = Counter(pair for row in rows for pair in pairwise(row))
    ones, twos = single.total(), pairs.total()
    return {
        (left, right): math.log2(count / twos * ones / single[left] * ones / single[right])
        for (left, right), count in pairs.items()
    }


def wholes(
    row: Sequence[int], information: dict[tuple[int, int], float], threshold: float
) -> Iterator[tuple[int, ...]]:
    """The parts of `row` between neighbours that do not hold together."""
    begin = 0
    for at, pair in enumerate(pairwise(row), 1):
        if information[pair] < threshold:
            yield tuple(row[begin:at])
            begin = at
    yield tuple(row[begin:])
