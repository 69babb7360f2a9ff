"""The language of each token (Lample & Conneau 2019, XLM §3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from pipelines.components import did_you_mean
from pipelines.errors import DataError
from pipelines.parts.annotations import Annotation
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

NAME = "languages"


class Languages(Annotation, name=NAME):
    """The language of a token, as an index into `order`; special tokens have that of the text they belong to.

    Every text has the language `of`; where an example has several texts, `of` maps the column of each to its language:
    `{text_a: en, text_b: zh}`.
    """

    paper = "arXiv:1901.07291"
    makes = NAME

    order: tuple[str, ...] = Option(min_length=1)
    """The languages: a language is stored as its index here, so later stages must keep this order."""
    of: str | dict[str, str]
    """Language of all texts, or text column → language."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if len(set(self.order)) < len(self.order):
            raise ValueError(f"order: {', '.join(self.order)} names a language twice")
        for language in [self.of] if isinstance(self.of, str) else self.of.values():
            if language not in self.order:
                raise ValueError(f"of: {language!r} is not in order.{did_you_mean(language, self.order)}")
        return self

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (Channel(NAME, size=len(self.order)),)

    @property
    def columns(self) -> Mapping[str, str]:
        return {} if isinstance(self.of, str) else dict.fromkeys(self.of, "string")

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        if isinstance(self.of, str):
            return {NAME: np.full(len(text), self.order.index(self.of))}
        return {NAME: self._by_column(text, self.of)}

    def _by_column(self, text: TokenizedText, languages: Mapping[str, str]) -> NDArray[np.int64]:
        if text.column in languages:
            return np.full(len(text), self.order.index(languages[text.column]))
        raise DataError(
            f"{text.where}: the annotation {NAME} knows no language of the text in {text.column or 'several columns'!r}"
        )
