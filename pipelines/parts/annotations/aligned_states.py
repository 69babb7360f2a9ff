"""States of aligned words in another language's encoder (Wang et al. 2019, Cross-Lingual BERT Transformation)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.annotations import ModelAnnotation
from pipelines.task_families.tokenized import TokenizedText
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD, _LINK = re.compile(r"\S+"), re.compile(r"(\d+)-(\d+)")


class AlignedStates(ModelAnnotation, name="aligned_states"):
    """The state that a word has in the network of another stage, which reads the translation of the text, at the first
    token of the word that is aligned with it.

    Words are what spaces separate, as aligners read them. The state of a word is that of its first token, as taggers
    read it; of several aligned words it is their mean. All other tokens have a vector of 0.
    """

    paper = "arXiv:1909.06775"
    makes = "aligned_states"

    of: str = "text"
    """Column with the text that the other network reads."""
    alignment: str = "alignment"
    """Column with pairs of words, counted from 0: `0-0 1-2`, first the word of the column `of`, as fast_align writes
    them."""

    @property
    def channels(self) -> tuple[Channel, ...]:
        # a recipe does not say how wide the states are of a network that is to be computed
        width = 1 if self._model is None else int(self.model.network.config.hidden_size)
        return (Channel("aligned_states", size=None, shape=(width,), edges=(0, 0)),)

    @property
    def columns(self) -> Mapping[str, str]:
        return {self.of: "string", self.alignment: "string"}

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        """float32 [T, H], for states of H elements.

        Raises DataError naming the row for an alignment that is none of the words of both texts, or without a single
        pair.
        """
        if not isinstance(text.text, str):
            raise DataError(f"{text.where}: {self.name} aligns texts, and this one was cut into words before")
        other = str(text.value(self.of))
        own, others = _words(text.text), _words(other)
        links = self._links(text, len(others), len(own))
        # a state each, of the token that the first character is in
        first = np.asarray([(begin, begin + 1) for begin, _ in others], dtype=np.int64).reshape(-1, 2)
        states = self.model.states(TokenizedText(text.row, other, self.of, first, None, text.where))
        result = np.zeros((len(text), states.shape[1]), dtype=np.float32)
        for number, linked in links.items():
            begin, end = own[number]
            token = int(np.searchsorted(text.spans[:, 1], begin, side="right"))
            if token < len(text) and text.spans[token, 0] < end:
                result[token] = states[linked].mean(axis=0)
        return {self.makes: result}

    def _links(self, text: TokenizedText, others: int, own: int) -> dict[int, list[int]]:
        """Word of the text → the words of the other one that it is aligned with, of so many words of each."""
        links: dict[int, list[int]] = {}
        for pair in str(text.value(self.alignment)).split():
            link = _LINK.fullmatch(pair)
            if link is None or int(link[1]) >= others or int(link[2]) >= own:
                raise DataError(
                    f"{text.where}: the column {self.alignment!r} has {pair!r}, which is no pair of words of the "
                    f"columns {self.of!r} and {text.column!r}, of {others} and {own} words, counted from 0; align "
                    "the texts as they are here, and leave out cleaning rules that change them"
                )
            links.setdefault(int(link[2]), []).append(int(link[1]))
        if not links:
            raise DataError(
                f"{text.where}: the column {self.alignment!r} aligns no words; leave out pairs of texts without any"
            )
        return links


def _words(text: str) -> list[tuple[int, int]]:
    """Begin and end of every word, in characters."""
    return [match.span() for match in _WORD.finditer(text)]
