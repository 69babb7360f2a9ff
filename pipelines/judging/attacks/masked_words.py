"""Masked words: some words of a text are taken out of it (Tang et al. 2019, §3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.letters import ALPHABETIC, change_words

if TYPE_CHECKING:
    from numpy.random import Generator


class MaskedWords(Attack, name="masked_words"):
    """A word becomes a token that stands for no word: what each word adds to an answer shows in what is left.

    What is left may be too little for the answer: in training, a teacher says what is right of it.
    """

    paper = "arXiv:1903.12136"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC
    families: ClassVar[frozenset[str]] = frozenset({"text_classification", "pair_classification"})

    token: str = Field("[MASK]", pattern=r"^\S+$")
    """What is written in place of a word: the mask token of the networks that read it. A vocabulary without it reads
    its characters."""

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        return change_words(text, rate, random, lambda word: self.token)
