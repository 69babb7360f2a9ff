"""Similar words in place of the mask token, which no downstream text contains (Cui et al. 2020, MacBERT §3.2)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from pipelines.errors import DataError
from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.ngram_mask import NgramMask
from pipelines.parts.corruptions.word_sources import SimilarLists, similar_by_lexicon, similar_by_vectors
from pipelines.shipped import own_or_shipped
from pipelines.vocabulary import Field

MARKS = ("##", "Ġ", "▁")
"""What tokenizers write before the text of a token: a continued word, or a space."""


class SimilarWords(NgramMask, name="similar_words"):
    """Select n-grams of whole words; of their words most are replaced by a similar one, some by random tokens.

    Similar words come from a lexicon or from vectors. One is drawn for each selected word, with as many tokens as that
    word: a single token, or one for each character. A word without any is replaced by random tokens, as in the paper.
    What is drawn holds for all tokens of a word.
    """

    paper = "arXiv:2004.13922"
    needs = frozenset({Field.INPUT_IDS, Field.WORD_STARTS})
    may_read = frozenset()
    needs_tokens = frozenset()

    mask: float = Option(0.8, ge=0, le=1)
    """Share of the selected words that are replaced by a similar word."""
    random: float = Option(0.1, ge=0, le=1)
    """Share of the selected words that are replaced by random ordinary tokens; the rest are unchanged."""
    lengths: tuple[float, ...] = Option((40, 30, 20, 10), min_length=1)
    """Relative frequencies of n-grams of 1, 2, … words; the paper's by default."""
    lexicon: Path | None = None
    """UTF-8 file of similar words: words of a similar meaning in each line, separated by tabs."""
    vectors: Path | None = None
    """UTF-8 file of vectors: a word and its numbers in each line, separated by spaces, as word2vec writes them."""
    neighbours: int = Option(5, ge=1, le=1000)
    """Number of nearest words by cosine, where there are vectors."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.lexicon is None) == (self.vectors is None):
            raise ValueError("similar words come from one source: name either a lexicon or vectors")
        return self

    @property
    def source(self) -> Path:
        """Where the lexicon, or the file of vectors, is."""
        file = self.lexicon or self.vectors
        assert file is not None
        return own_or_shipped(file)

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (self.source,)

    def unfit(self, language: str | None) -> str | None:
        """Why the source is none for texts in `language`; None where it is one, or where the language is unknown."""
        if not self.source.is_file():
            return f"there is no file {self.source}; give a path relative to the current directory, or an absolute one"
        try:
            lists = self._lists()
        except DataError as error:
            return str(error)
        if language is None or lists.has_language(language):
            return None
        return f"{self.source} has no entry for {language}, the dataset's language; name a source of its words"

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        positions, words = self.selected(batch, tokens, random)
        clean = batch[Field.INPUT_IDS]
        corrupted = clean.ravel().copy()
        originals = corrupted[positions]
        first = np.flatnonzero(np.diff(words, prepend=-1))
        draws, picks = random.random(len(first)), random.random(len(first))
        vocabulary = np.flatnonzero(is_ordinary(np.arange(tokens.size), tokens))
        drawn = vocabulary[random.integers(len(vocabulary), size=len(positions))]
        ends = np.append(first, len(positions))[1:]
        for begin, end, draw, pick in zip(first, ends, draws, picks, strict=True):
            if draw >= self.mask + self.random:
                continue
            similar = self._similar(tuple(originals[begin:end].tolist()), tokens) if draw < self.mask else ()
            corrupted[positions[begin:end]] = similar[int(pick * len(similar))] if similar else drawn[begin:end]
        return {
            **batch,
            Field.INPUT_IDS: corrupted.reshape(clean.shape),
            Field.MASKED_POSITIONS: positions,
            Field.MASKED_LABELS: originals,
        }

    def _similar(self, word: tuple[int, ...], tokens: TokenIds) -> tuple[tuple[int, ...], ...]:
        """The token ids of every similar word of the word with the ids `word`, each of as many tokens."""
        ids = _ids(tokens.texts)
        parts = [_split(tokens.texts[token]) for token in word] if tokens.texts else []
        result = []
        for other in self._lists().similar("".join(text for _, text in parts)):
            pieces = (other,) if len(word) == 1 else tuple(other)
            if len(pieces) == len(word):
                written = [ids.get(mark + piece, -1) for (mark, _), piece in zip(parts, pieces, strict=True)]
                if min(written) >= 0 and not set(written) & set(tokens.special):
                    result.append(tuple(written))
        return tuple(result)

    def _lists(self) -> SimilarLists:
        return similar_by_lexicon(self.source) if self.lexicon else similar_by_vectors(self.source, self.neighbours)


def _split(token: str) -> tuple[str, str]:
    """The mark before the text of a token, and that text."""
    mark = next((mark for mark in MARKS if token.startswith(mark) and token != mark), "")
    return mark, token[len(mark) :]


@lru_cache(maxsize=4)
def _ids(texts: tuple[str, ...]) -> dict[str, int]:
    return {text: number for number, text in enumerate(texts)}
