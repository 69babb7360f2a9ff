"""One value for all tokens: which task, treebank or source a line reads (Sun et al. 2019, ERNIE 2.0 §4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from pipelines.parts.annotations import Annotation
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText


class OneValue(Annotation, name="one_value"):
    """The same value for every token, special tokens included: what tells lines with different values apart."""

    paper = "arXiv:1907.12412"

    channel: str = Option(pattern=r"[a-z][a-z_]*")
    """Channel to make."""
    value: int = Option(0, ge=0)
    """Value of every token."""
    size: int = Option(gt=0)
    """Number of values that the channel may have, in all lines and in later stages."""

    @model_validator(mode="after")
    def _in_range(self) -> Self:
        if self.value >= self.size:
            raise ValueError(f"value: {self.value} is outside the channel's range, 0 to {self.size - 1}")
        return self

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (Channel(self.channel, size=self.size),)

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        return {self.channel: np.full(len(text), self.value)}
